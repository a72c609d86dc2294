import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.posthog.server.PostHog;
import com.posthog.server.PostHogCaptureOptions;
import com.posthog.server.PostHogConfig;
import com.posthog.server.PostHogFeatureFlagOptions;
import com.posthog.server.PostHogInterface;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Uses an unmodified posthog-server as an application does and prints the results.
 *
 * <pre>java -cp 'lib/*' Judge.java &lt; task.json</pre>
 */
class Judge {
    static final ObjectMapper json = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        JsonNode task = json.readTree(System.in);
        PostHogInterface remote = PostHog.with(config(task).build());
        PostHogInterface local = PostHog.with(config(task).personalApiKey(task.get("personal_key").asText())
            .localEvaluation(true).pollIntervalSeconds(60).sendFeatureFlagEvent(true).build());
        local.reloadFeatureFlags();

        Map<String, Object> remoteFlags = new LinkedHashMap<>(), localFlags = new LinkedHashMap<>();
        for (JsonNode person : task.get("ids")) {
            String id = person.get("id").asText();
            PostHogFeatureFlagOptions options = PostHogFeatureFlagOptions.builder().personProperties(map(person.get("properties"))).build();
            remoteFlags.put(id, flags(remote, task, id, options));
            localFlags.put(id, flags(local, task, id, options));
        }

        String run = task.get("run").asText(), stored = run + "-stored";
        remote.identify(stored, Map.of("plan", "pro", "age", 42));
        for (int n = 0; n < 25; n++) {
            remote.capture(run + "-user-" + n % 5, "ordered",
                PostHogCaptureOptions.builder().property("n", n).property("note", "naïve 💻 \"quoted\"").build());
        }
        remote.alias(stored, run + "-alias");
        remote.group(stored, "organization", "acme", Map.of("seats", 12));
        Object flag = remote.getFeatureFlag(stored, task.get("probe").asText(),
            PostHogFeatureFlagOptions.builder().personProperties(Map.of("plan", "pro", "age", 42)).build());
        for (PostHogInterface client : List.of(remote, local)) {
            client.flush();
        }
        awaitEvents(task, run + "-user-", 25);
        remote.close();
        local.close();
        json.writeValue(System.out, Map.of("remote", remoteFlags, "local", localFlags, "flag", flag, "failures", List.of()));
        System.exit(0);
    }

    /** Flush sends from a thread that an application cannot wait for, so this asks the server. */
    static void awaitEvents(JsonNode task, String prefix, int count) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(task.get("url").asText()
            + "/api/projects/@current/events/?event=ordered&limit=1000&token=" + task.get("project_key").asText()))
            .header("Authorization", "Bearer " + task.get("personal_key").asText()).build();
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (System.nanoTime() < deadline) {
            String events = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
            if (events.split(prefix, -1).length > count) {
                return;
            }
            Thread.sleep(100);
        }
    }

    static PostHogConfig.Builder config(JsonNode task) {
        return PostHogConfig.builder(task.get("project_key").asText()).host(task.get("url").asText())
            .flushAt(100).flushIntervalSeconds(1).sendFeatureFlagEvent(false).preloadFeatureFlags(true);
    }

    static Map<String, Object> flags(PostHogInterface client, JsonNode task, String id, PostHogFeatureFlagOptions options) {
        Map<String, Object> values = new LinkedHashMap<>();
        for (JsonNode key : task.get("keys")) {
            Object value = client.getFeatureFlag(id, key.asText(), options);
            if (value != null) {
                values.put(key.asText(), value);
            }
        }
        return values;
    }

    static Map<String, Object> map(JsonNode node) {
        return json.convertValue(node, new com.fasterxml.jackson.core.type.TypeReference<Map<String, Object>>() {});
    }
}
