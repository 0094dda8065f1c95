package com.alibaba.fastjson;

import java.util.Map;
import org.mobilesync.internal.json.JsonText;

/** A stand-in for the class of fastjson, which Debian does not have: the one method that a sample calls. */
public final class JSON {
    private JSON() {}

    /** Returns a map with texts as a JSON object. */
    public static String toJSONString(Map<String, String> object) {
        StringBuilder json = new StringBuilder("{");
        for (Map.Entry<String, String> member : object.entrySet()) {
            if (json.length() > 1) json.append(',');
            json.append(JsonText.quoted(member.getKey())).append(':').append(JsonText.quoted(member.getValue()));
        }
        return json.append('}').toString();
    }
}
