package org.mobilesync;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.UUID;

/**
 * Makes and keeps a device id that stays the same across launches of the app, and with a seed of the platform also when
 * the app is installed again (K5).
 */
public final class DeviceIdentifier {
    private static final int ID_BYTES = 16;

    private DeviceIdentifier() {}

    /**
     * Returns the device id that belongs to a seed: always the same for the same seed.
     *
     * @param seed a text that only apps with this app's signing key can read on this device, and that stays the same
     *     when the app is installed again; on Android {@code new AndroidPlatform(context).deviceSeed()}
     */
    public static String fromSeed(String seed) {
        byte[] digest = digest("mobile-sync device id", seed);
        StringBuilder id = new StringBuilder();
        for (int index = 0; index < ID_BYTES; index++) id.append(String.format("%02x", digest[index]));
        return id.toString();
    }

    /**
     * Returns the secret of the device id of a seed, for {@link SyncConfiguration.Builder#deviceSecret}. With it, the
     * service recognises the device after the app was installed again (SEC9).
     */
    public static byte[] secretFromSeed(String seed) {
        return digest("mobile-sync device secret", seed);
    }

    /** The purpose separates id and secret: nobody can compute one from the other. */
    private static byte[] digest(String purpose, String seed) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            return digest.digest((purpose + '\n' + seed).getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing); // every platform has it
        }
    }

    /**
     * Returns the device id that is stored in a folder. The first call makes a random id and stores it.
     *
     * <p>Keep this file apart from the local store, and exclude it from backups that another device can restore. Two
     * devices with one id end each other's connections.
     *
     * @param folder a folder that exists and is writable
     * @throws SyncException STORE when the file cannot be read or made
     */
    public static String load(String folder) {
        return load(folder, null);
    }

    /**
     * As {@link #load(String)}, but the first call makes the id of a seed. A stored id stays, even if the seed changes
     * or comes later, because the local store belongs to it.
     *
     * @param seed as for {@link #fromSeed}; null for a random id
     */
    public static synchronized String load(String folder, String seed) {
        Path file = Paths.get(folder, "device-id");
        try {
            // An unreadable file is an error: a new id would replace the device's id.
            if (Files.exists(file)) {
                String id = new String(Files.readAllBytes(file), StandardCharsets.UTF_8).trim();
                if (!id.isEmpty()) return id;
            }
            String id = seed == null ? UUID.randomUUID().toString() : fromSeed(seed);
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
