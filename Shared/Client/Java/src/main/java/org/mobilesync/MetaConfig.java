package org.mobilesync;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.mobilesync.internal.json.JsonText;

/**
 * The connection settings that an app is built with: the content of a {@code meta.config} file, as
 * {@code mssctl instance meta-config} prints it (K7). Unknown members are ignored. Immutable.
 */
public final class MetaConfig {
    private static final int HIGHEST_PORT = 65_535;

    private final String host;
    private final int port;
    private final String instanceId;
    private final SyncAppKey signingKey;

    private MetaConfig(String host, int port, String instanceId, SyncAppKey signingKey) {
        this.host = host;
        this.port = port;
        this.instanceId = instanceId;
        this.signingKey = signingKey;
    }

    /**
     * Reads the content of a file.
     *
     * @param source the name of the content in error messages
     * @throws SyncException INVALID_ARGUMENT; the message names the source, the member and its expected form
     */
    public static MetaConfig parse(byte[] json, String source) {
        Map<String, String> members = JsonText.members(new String(json, StandardCharsets.UTF_8));
        if (members == null) throw invalid(source + " is not a JSON object in UTF-8");
        Reader reader = new Reader(members, source);
        String host = reader.required("syncserver", "the gateway's name or address, without https:// and port");
        if (host.matches(".*[/\\s].*")) {
            throw reader.error("syncserver", "the gateway's name or address, without https:// and port");
        }
        return new MetaConfig(host, reader.port(), reader.instanceId(), reader.signingKey());
    }

    private static SyncException invalid(String message) {
        return new SyncException(SyncException.Code.INVALID_ARGUMENT, message);
    }

    /** Reads members, and makes the errors for invalid ones. */
    private static final class Reader {
        private final Map<String, String> members;
        private final String source;

        Reader(Map<String, String> members, String source) {
            this.members = members;
            this.source = source;
        }

        /** Returns null when the member is missing or empty. */
        String text(String name) {
            String json = members.get(name);
            if (json == null) return null;
            String text = JsonText.string(json);
            if (text == null) throw error(name, "a text");
            return text.isEmpty() ? null : text;
        }

        String required(String name, String expected) {
            String text = text(name);
            if (text == null) throw error(name, expected);
            return text;
        }

        int port() {
            String json = members.get("syncport");
            String digits = json == null ? "" : json.startsWith("\"") ? JsonText.string(json) : json;
            if (digits == null || !digits.matches("[0-9]{1,5}") || Integer.parseInt(digits) < 1
                || Integer.parseInt(digits) > HIGHEST_PORT) {
                throw error("syncport", "a number from 1 to 65535, as a number or as a text");
            }
            return Integer.parseInt(digits);
        }

        String instanceId() {
            String whole = text("instanceId");
            String workspaceId = text("workspaceId");
            String appId = text("appId");
            if (whole == null) {
                return required("workspaceId", "a text that is not empty") + "_"
                    + required("appId", "a text that is not empty");
            }
            boolean isOther = workspaceId != null && appId != null && !whole.equals(workspaceId + "_" + appId);
            if (isOther) {
                throw error("instanceId",
                    "<workspaceId>_<appId>, here " + workspaceId + "_" + appId + ", or leave it out");
            }
            return whole;
        }

        SyncAppKey signingKey() {
            String secret = text("appSecret");
            String key = text("appKey");
            if (secret == null) return null;
            try {
                return new SyncAppKey(key == null ? "" : key, secret);
            } catch (SyncException error) {
                throw error("appSecret", "Base64 of at least 16 bytes, together with appKey");
            }
        }

        SyncException error(String name, String expected) {
            String state = members.containsKey(name) ? " is not usable" : " is missing";
            return invalid(source + ": " + name + state + "; expected " + expected);
        }
    }

    /** Returns the gateway's host name or address; {@code syncserver} in the file. */
    public String host() {
        return host;
    }

    /** Returns the gateway's port; {@code syncport} in the file. */
    public int port() {
        return port;
    }

    /** Returns the instance: {@code instanceId} of the file, or else {@code <workspaceId>_<appId>}. */
    public String instanceId() {
        return instanceId;
    }

    /** Returns a builder with this gateway, instance and key. */
    public SyncConfiguration.Builder configuration() {
        return SyncConfiguration.builder().gateway(host, port).instanceId(instanceId).appKey(signingKey);
    }
}
