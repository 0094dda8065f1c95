package com.example.push;

import java.io.IOException;
import net.sf.json.JSONObject;

/** Pushes to one device, with every optional parameter of the guide. */
public final class DevicePush {
    private DevicePush() {}

    /** Pushes, and returns the code of the answer. */
    public static String push(String api, String instanceId, String device, String thirdMsgId) throws IOException {
        JSONObject content = new JSONObject();
        content.put("bizType", "DEVICE-LOCK");
        content.put("linkToken", device);
        content.put("thirdMsgId", thirdMsgId);
        content.put("payload", "lock");
        content.put("osType", "Android");
        content.put("appMinVersion", "0.0.0.0");
        content.put("appMaxVersion", "100.100.100.100");
        content.put("validTimeEnd", String.valueOf(System.currentTimeMillis() + 86_400_000L));
        return SamplePost.post(api + "/webapi/sync/single?instanceId=" + instanceId, content);
    }
}
