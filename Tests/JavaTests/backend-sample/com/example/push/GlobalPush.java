package com.example.push;

import com.alibaba.fastjson.JSON;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import net.sf.json.JSONObject;

/** Pushes to all devices. The payload is made with fastjson. */
public final class GlobalPush {
    private GlobalPush() {}

    /** Pushes, and returns the code of the answer. */
    public static String push(String api, String instanceId, String thirdMsgId) throws IOException {
        Map<String, String> configuration = new LinkedHashMap<>();
        configuration.put("push", thirdMsgId);
        JSONObject content = new JSONObject();
        content.put("bizType", "GLOBAL-SDK-CONFIG");
        content.put("thirdMsgId", thirdMsgId);
        content.put("payload", JSON.toJSONString(configuration));
        return SamplePost.post(api + "/webapi/sync/global?instanceId=" + instanceId, content);
    }
}
