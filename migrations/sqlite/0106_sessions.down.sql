DROP TABLE user_identities;
DROP TABLE sign_in_links;
DROP TABLE user_passwords;
DROP TABLE sessions;
