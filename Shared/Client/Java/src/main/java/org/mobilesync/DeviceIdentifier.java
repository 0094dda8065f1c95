package org.mobilesync;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.UUID;

/** Makes and keeps a device id that stays the same across launches of the app (K5). */
public final class DeviceIdentifier {
    private DeviceIdentifier() {}

    /**
     * Returns the device id that is stored in a folder. The first call makes the id and stores it.
     *
     * <p>Keep this file apart from the local store, and exclude it from backups that another device can restore. Two
     * devices with one id end each other's connections.
     *
     * @param folder a folder that exists and is writable
     * @throws SyncException STORE when the file cannot be read or made
     */
    public static synchronized String load(String folder) {
        Path file = Paths.get(folder, "device-id");
        try {
            // An unreadable file is an error: a new id would replace the device's id.
            if (Files.exists(file)) {
                String id = new String(Files.readAllBytes(file), StandardCharsets.UTF_8).trim();
                if (!id.isEmpty()) return id;
            }
            String id = UUID.randomUUID().toString();
            Path draft = Paths.get(folder, "device-id.new");
            Files.write(draft, id.getBytes(StandardCharsets.UTF_8));
            Files.move(draft, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            return id;
        } catch (IOException error) {
            throw new SyncException(SyncException.Code.STORE, "the device id in " + folder
                + " cannot be read or made (" + error.getMessage() + "); check access rights and space", error);
        }
    }
}
