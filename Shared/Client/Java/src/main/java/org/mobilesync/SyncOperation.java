package org.mobilesync;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;

/** A change of the bound user on this device, for the tenant's backend (DeviceProtocol.md, Operations). Immutable. */
public final class SyncOperation {
    private static final int ID_BYTES = 64;
    private static final int COMPONENT_UNITS = 30;
    private static final int KEY_BYTES = 256;
    private static final int NAME_UNITS = 30;
    private static final int CHILDREN = 100;
    private static final int BODY_BYTES = 192 * 1_024;

    private final String id;
    private final String component;
    private final String entityKey;
    private final String name;
    private final byte[] body;
    private final List<SyncOperation> children;

    /** Creates an operation with a new id and without children. The body is JSON or any other bytes. */
    public SyncOperation(String component, String entityKey, String name, byte[] body) {
        this(UUID.randomUUID().toString(), component, entityKey, name, body, Collections.<SyncOperation>emptyList());
    }

    /**
     * Creates an operation. {@link SyncClient#submit} checks the limits.
     *
     * @param id 1 to 64 printable ASCII characters without spaces; a repeat of the operation has the same id
     * @param component the type of the entity: 1 to 30 letters, digits, {@code -}, {@code _}, {@code .}
     * @param entityKey 1 to 256 bytes of UTF-8 without NUL; operations on one entity are executed in their order
     * @param name {@code create}, {@code update}, {@code delete}, or a name of the app: 1 to 30 characters
     * @param body JSON or any other bytes; with the children's at most 192 KiB
     * @param children executed in the same call: at most 100, without children of their own
     */
    public SyncOperation(String id, String component, String entityKey, String name, byte[] body,
        List<SyncOperation> children) {
        this.id = id;
        this.component = component;
        this.entityKey = entityKey;
        this.name = name;
        this.body = body.clone();
        this.children = Collections.unmodifiableList(new ArrayList<>(children));
    }

    /** Returns the id. */
    public String id() {
        return id;
    }

    /** Returns the type of the entity. */
    public String component() {
        return component;
    }

    /** Returns the entity's key. */
    public String entityKey() {
        return entityKey;
    }

    /** Returns the name. */
    public String name() {
        return name;
    }

    /** Returns a copy of the body. */
    public byte[] body() {
        return body.clone();
    }

    /** Returns the children. */
    public List<SyncOperation> children() {
        return children;
    }

    /** Returns the fault of the operation, as a sentence for developers; null for a valid one. */
    public String fault() {
        String own = ownFault();
        if (own != null) return own;
        if (children.size() > CHILDREN) return "an operation has at most " + CHILDREN + " children";
        int bytes = body.length;
        Set<String> ids = new HashSet<>();
        ids.add(id);
        for (SyncOperation child : children) {
            if (child.ownFault() != null) return "a child: " + child.ownFault();
            if (!child.children.isEmpty()) return "a child has no children";
            if (!ids.add(child.id)) return "an operation and its children have different ids";
            bytes += child.body.length;
        }
        return bytes <= BODY_BYTES ? null
            : "the bodies of an operation and its children have at most " + BODY_BYTES + " bytes together";
    }

    private String ownFault() {
        if (!id.matches("[!-~]{1," + ID_BYTES + "}")) {
            return "an operation id has 1 to " + ID_BYTES + " printable ASCII characters without spaces";
        }
        if (!component.matches("[A-Za-z0-9_.-]{1," + COMPONENT_UNITS + "}")) {
            return "a component has 1 to " + COMPONENT_UNITS + " letters, digits, '-', '_' or '.'";
        }
        int keyBytes = entityKey.getBytes(StandardCharsets.UTF_8).length;
        if (keyBytes < 1 || keyBytes > KEY_BYTES || entityKey.indexOf(0) >= 0) {
            return "an entity's key has 1 to " + KEY_BYTES + " bytes without NUL";
        }
        boolean isPlain = name.chars().noneMatch(unit -> unit < 0x20);
        return !name.isEmpty() && name.length() <= NAME_UNITS && isPlain ? null
            : "an operation's name has 1 to " + NAME_UNITS + " characters without control characters";
    }
}
