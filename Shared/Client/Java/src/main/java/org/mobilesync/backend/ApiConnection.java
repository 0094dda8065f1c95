package org.mobilesync.backend;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateException;
import java.util.Map;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSocketFactory;

/** Makes one attempt of a call with the platform's HTTP client. Safe for concurrent use. */
final class ApiConnection {
    private static final int LARGEST_ANSWER = 4 << 20;

    private final String address;
    private final RequestSigner signer;
    /** One object for all connections, because the platform reuses connections by it; null for the default. */
    private final SSLSocketFactory sockets;
    private final int timeoutMs;

    ApiConnection(String address, RequestSigner signer, SSLSocketFactory sockets, int timeoutMs) {
        this.address = address;
        this.signer = signer;
        this.sockets = sockets;
        this.timeoutMs = timeoutMs;
    }

    /** Sends a request, and returns its answer or the reason why there is none. */
    ApiAnswer attempt(ApiCall call) {
        HttpURLConnection connection = null;
        try {
            connection = (HttpURLConnection) URI.create(address + call.target).toURL().openConnection();
            send(call, connection);
            return read(connection);
        } catch (IOException error) {
            if (connection != null) connection.disconnect();
            return isCertificateRefused(error)
                ? ApiAnswer.refusedCertificate(error, address) : ApiAnswer.none(error);
        }
    }

    private void send(ApiCall call, HttpURLConnection connection) throws IOException {
        if (sockets != null && connection instanceof HttpsURLConnection) {
            ((HttpsURLConnection) connection).setSSLSocketFactory(sockets);
        }
        connection.setRequestMethod(call.method);
        connection.setConnectTimeout(timeoutMs);
        connection.setReadTimeout(timeoutMs);
        connection.setUseCaches(false);
        // A followed redirect would send the signature and the data to another server.
        connection.setInstanceFollowRedirects(false);
        connection.setRequestProperty("Accept", "application/json");
        if (signer != null) {
            for (Map.Entry<String, String> header : signer.headers(call, System.currentTimeMillis()).entrySet()) {
                connection.setRequestProperty(header.getKey(), header.getValue());
            }
        }
        if (call.body.length == 0) return;
        connection.setRequestProperty("Content-Type", "application/json");
        connection.setDoOutput(true);
        connection.getOutputStream().write(call.body);
    }

    private static ApiAnswer read(HttpURLConnection connection) throws IOException {
        int status = connection.getResponseCode();
        if (status < 0) throw new IOException("the answer is not HTTP");
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        InputStream failed = connection.getErrorStream();
        try (InputStream in = failed == null && status < 400 ? connection.getInputStream() : failed) {
            byte[] part = new byte[8_192];
            int count = in == null ? -1 : in.read(part);
            while (count >= 0) {
                body.write(part, 0, count);
                if (body.size() > LARGEST_ANSWER) throw new IOException("the answer is above 4 MiB");
                count = in.read(part);
            }
        }
        // The platform reports the end of the connection within a body as the end of the body.
        if (body.size() < connection.getContentLengthLong()) throw new IOException("the answer was cut off");
        String text = new String(body.toByteArray(), StandardCharsets.UTF_8);
        return ApiAnswer.of(status, text, seconds(connection.getHeaderField("Retry-After")));
    }

    /** Returns the seconds of a Retry-After; 0 when it is absent or a date, which the API never sends. */
    private static long seconds(String retryAfter) {
        return retryAfter != null && retryAfter.matches("\\d{1,9}") ? Long.parseLong(retryAfter) : 0;
    }

    /** Returns whether the handshake failed for the certificate, and not for a lost connection. */
    private static boolean isCertificateRefused(IOException error) {
        if (error instanceof SSLPeerUnverifiedException) return true;
        if (!(error instanceof SSLException)) return false;
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof CertificateException) return true;
        }
        return false;
    }
}
