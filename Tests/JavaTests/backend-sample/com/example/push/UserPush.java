package com.example.push;

import java.io.IOException;
import net.sf.json.JSONObject;

/** Pushes to one user. The payload is a text that looks like JSON, so json-lib sends it as an object (H2). */
public final class UserPush {
    private UserPush() {}

    /** Pushes, and returns the code of the answer. */
    public static String push(String api, String instanceId, String user, String thirdMsgId) throws IOException {
        JSONObject content = new JSONObject();
        content.put("bizType", "UCHAT");
        content.put("linkToken", user);
        content.put("thirdMsgId", thirdMsgId);
        content.put("payload", "{\"name\":\"Zoë\", \"note\":\"你好\"}");
        return SamplePost.post(api + "/webapi/sync/single?instanceId=" + instanceId, content);
    }
}
