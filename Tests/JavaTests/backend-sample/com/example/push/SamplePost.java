package com.example.push;

import java.io.IOException;
import net.sf.json.JSONObject;
import org.apache.commons.httpclient.HttpStatus;
import org.apache.http.client.methods.CloseableHttpResponse;
import org.apache.http.client.methods.HttpPost;
import org.apache.http.entity.StringEntity;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.util.EntityUtils;

/** The request of the samples: the libraries, the two headers and the reading of HTTP 200 alone are the guide's. */
final class SamplePost {
    private SamplePost() {}

    /** Posts a JSON object. Returns the code of the answer; null when the status is not 200. */
    static String post(String url, JSONObject content) throws IOException {
        StringEntity body = new StringEntity(content.toString(), "UTF-8");
        body.setContentEncoding("UTF-8");
        body.setContentType("application/json");
        HttpPost request = new HttpPost(url);
        request.setEntity(body);
        try (CloseableHttpClient client = HttpClients.createDefault();
            CloseableHttpResponse response = client.execute(request)) {
            if (response.getStatusLine().getStatusCode() != HttpStatus.SC_OK) return null;
            return JSONObject.fromObject(EntityUtils.toString(response.getEntity())).getString("msg");
        }
    }
}
