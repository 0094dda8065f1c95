package org.mobilesync.internal.store;

import java.util.ArrayList;
import java.util.List;
import org.mobilesync.SyncParameter;
import org.mobilesync.SyncParameterKind;
import org.mobilesync.SyncParameterValue;
import org.mobilesync.internal.wire.Parameter;

/** The subscription parameters in a local store: those of the client, and the known ones of the server. */
public final class Parameters {
    private static final String OF_USER = "user_id = ? AND biz_type = ? AND name = ?";

    private final StoreFile file;

    Parameters(StoreFile file) {
        this.file = file;
    }

    /** Returns the values of a user, or of the device for null, without removals that wait for the service. */
    public List<SyncParameter> all(String userId) {
        return file.access("reading parameters", () -> {
            List<SyncParameter> values = new ArrayList<>();
            for (SyncParameter one : file.database().query(row -> new SyncParameter(
                row.getText(0), row.getText(1),
                row.getLong(2) == 1 ? SyncParameterKind.SERVER : SyncParameterKind.CLIENT,
                SyncParameterValue.ofJson(row.getText(3)), row.getLong(4) == 1),
                "SELECT biz_type, name, is_server, value, is_pending FROM parameter WHERE user_id = ?"
                    + " ORDER BY biz_type, name, is_server", owner(userId))) {
                if (one.value() != null) values.add(one);
            }
            return values;
        });
    }

    /** Returns the values that the service is to store or to remove, and has not confirmed. */
    public List<Parameter> pending(String userId) {
        return file.access("reading parameters", () -> file.database().query(row -> {
            Parameter parameter = new Parameter();
            parameter.bizType = row.getText(0);
            parameter.name = row.getText(1);
            parameter.value = row.getText(2);
            return parameter;
        }, "SELECT biz_type, name, value FROM parameter WHERE user_id = ? AND is_server AND is_pending"
            + " ORDER BY biz_type, name", userId));
    }

    /** Stores a value, or removes it for null. A value for the server is pending until the service replies. */
    public void set(String userId, String bizType, String name, SyncParameterValue value, boolean isServer) {
        file.change("storing a parameter", () -> {
            if (value == null && !isServer) {
                return file.database().execute("DELETE FROM parameter WHERE " + OF_USER + " AND NOT is_server",
                    owner(userId), bizType, name);
            }
            long flag = isServer ? 1 : 0;
            return file.database().execute("INSERT OR REPLACE INTO parameter VALUES (?, ?, ?, ?, ?, ?)",
                owner(userId), bizType, name, flag, value == null ? "" : value.json(), flag);
        });
    }

    /**
     * Applies a reply of the service, which stores these values or never will. A value that has changed meanwhile stays
     * pending.
     */
    public void answered(List<Parameter> parameters, String userId, boolean isKept) {
        file.change("applying a reply about parameters", () -> {
            for (Parameter parameter : parameters) {
                boolean isGone = !isKept || parameter.value.isEmpty();
                String change = isGone ? "DELETE FROM parameter" : "UPDATE parameter SET is_pending = 0";
                file.database().execute(change + " WHERE " + OF_USER + " AND is_server AND value = ?",
                    userId, parameter.bizType, parameter.name, parameter.value);
            }
            return null;
        });
    }

    /** Replaces the known values of the server with all that it has for the user. Pending values stay. */
    public void replaceServerValues(List<Parameter> parameters, String userId) {
        file.change("storing the server's parameters", () -> {
            file.database().execute(
                "DELETE FROM parameter WHERE user_id = ? AND is_server AND NOT is_pending", userId);
            for (Parameter parameter : parameters) {
                file.database().execute("INSERT OR IGNORE INTO parameter VALUES (?, ?, ?, 1, ?, 0)",
                    userId, parameter.bizType, parameter.name, parameter.value);
            }
            return null;
        });
    }

    private static String owner(String userId) {
        return userId == null ? "" : userId;
    }
}
