package org.mobilesync.internal.store;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.mobilesync.SyncOperationResult;
import org.mobilesync.internal.json.JsonText;

/** One result in an oplog of the Sync ID MSS_RESULTS (DeviceProtocol.md, Results). */
final class ResultPayload {
    final SyncOperationResult.Builder result;
    /** The user that the service names; empty when it names none. */
    final String userId;

    private ResultPayload(SyncOperationResult.Builder result, String userId) {
        this.result = result;
        this.userId = userId;
    }

    /** Returns the result of an operation that the service will never accept. */
    static ResultPayload refusal(String operationId, long code, String message, long nowMs) {
        SyncOperationResult.Builder result = new SyncOperationResult.Builder();
        result.operationId = operationId;
        result.code = code;
        result.level = "ERROR";
        result.message = message;
        result.timestampMs = nowMs;
        return new ResultPayload(result, "");
    }

    /** Returns the results in a payload, without invalid ones. */
    static List<ResultPayload> all(byte[] payload) {
        List<ResultPayload> results = new ArrayList<>();
        Map<String, String> members = JsonText.members(new String(payload, StandardCharsets.UTF_8));
        String list = members == null ? null : members.get("results");
        List<String> elements = list == null ? null : JsonText.elements(list);
        if (elements == null) return results;
        for (String element : elements) {
            ResultPayload result = parse(JsonText.members(element));
            if (result != null) results.add(result);
        }
        return results;
    }

    private static ResultPayload parse(Map<String, String> members) {
        if (members == null || text(members, "operationId", "").isEmpty()) return null;
        SyncOperationResult.Builder result = new SyncOperationResult.Builder();
        result.operationId = text(members, "operationId", "");
        result.component = text(members, "component", "");
        result.entityKey = text(members, "entityKey", "");
        result.name = text(members, "operation", "");
        result.isAccepted = "true".equals(members.get("accepted"));
        result.code = number(members, "code", result.isAccepted ? 200 : 500);
        result.level = text(members, "level", result.isAccepted ? "INFO" : "ERROR");
        result.message = text(members, "message", "");
        result.requestId = text(members, "requestId", "");
        result.timestampMs = number(members, "timestamp", 0);
        String imported = members.get("import");
        result.imported = "null".equals(imported) ? null : imported;
        return new ResultPayload(result, text(members, "userId", ""));
    }

    private static String text(Map<String, String> members, String name, String otherwise) {
        String text = JsonText.string(members.get(name));
        return text == null ? otherwise : text;
    }

    private static long number(Map<String, String> members, String name, long otherwise) {
        String digits = members.get(name);
        try {
            return digits == null ? otherwise : Long.parseLong(digits);
        } catch (NumberFormatException error) {
            return otherwise;
        }
    }
}
