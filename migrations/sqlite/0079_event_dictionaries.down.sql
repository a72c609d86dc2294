-- Every compressed row becomes text again, which earlier versions read. A row that is
-- damaged fails the step.

UPDATE events SET properties = event_properties(properties,
        (SELECT d.content FROM event_dictionaries AS d WHERE d.id = event_dictionary_id(events.properties)), distinct_id, current_url)
    WHERE typeof(properties) = 'blob';
DROP TABLE event_dictionaries;
