import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.openfeature.contrib.providers.ofrep.OfrepProvider;
import dev.openfeature.contrib.providers.ofrep.OfrepProviderOptions;
import dev.openfeature.sdk.BaseEvaluation;
import dev.openfeature.sdk.Client;
import dev.openfeature.sdk.EvaluationContext;
import dev.openfeature.sdk.ImmutableContext;
import dev.openfeature.sdk.OpenFeatureAPI;
import dev.openfeature.sdk.Structure;
import dev.openfeature.sdk.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Evaluates scenarios with the unmodified OFREP provider of OpenFeature.
 *
 * <pre>java -cp 'lib/*' Ofrep.java &lt; task.json</pre>
 */
class Ofrep {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        JsonNode task = json.readTree(System.in);
        OpenFeatureAPI.getInstance().setProviderAndWait(OfrepProvider.constructProvider(OfrepProviderOptions.builder()
            .baseUrl(task.get("url").asText())
            .headers(ImmutableMap.of("Authorization", ImmutableList.of("Bearer " + task.get("project_key").asText()))).build()));
        Client client = OpenFeatureAPI.getInstance().getClient();
        List<Object> results = new ArrayList<>();
        for (JsonNode scenario : task.get("scenarios")) {
            BaseEvaluation<?> details = evaluate(client, scenario, context(scenario.get("context")));
            Object value = details.getValue();
            if (value instanceof Value structure) {
                value = structure.isStructure() ? structure.asStructure().asObjectMap() : structure.asObject();
            }
            Map<String, Object> result = new HashMap<>();
            result.put("value", value);
            result.put("variant", details.getVariant() == null ? "" : details.getVariant());
            result.put("reason", details.getReason());
            result.put("code", details.getErrorCode() == null ? "" : details.getErrorCode().name());
            results.add(result);
        }
        json.writeValue(System.out, results);
        System.exit(0);
    }

    static EvaluationContext context(JsonNode attributes) {
        Map<String, Value> values = new HashMap<>();
        attributes.fields().forEachRemaining(a -> values.put(a.getKey(),
            a.getValue().isNumber() ? new Value(a.getValue().asDouble()) : new Value(a.getValue().asText())));
        values.remove("targetingKey");
        return new ImmutableContext(attributes.get("targetingKey").asText(), values);
    }

    static BaseEvaluation<?> evaluate(Client client, JsonNode scenario, EvaluationContext context) {
        String key = scenario.get("key").asText();
        JsonNode fallback = scenario.get("default");
        return switch (scenario.get("type").asText()) {
            case "boolean" -> client.getBooleanDetails(key, fallback.asBoolean(), context);
            case "string" -> client.getStringDetails(key, fallback.asText(), context);
            case "integer" -> client.getIntegerDetails(key, fallback.asInt(), context);
            case "float" -> client.getDoubleDetails(key, fallback.asDouble(), context);
            default -> client.getObjectDetails(key, new Value(Structure.mapToStructure(Map.of())), context);
        };
    }
}
