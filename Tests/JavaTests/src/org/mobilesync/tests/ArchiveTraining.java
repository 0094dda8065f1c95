package org.mobilesync.tests;

import java.nio.file.Files;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.ConfirmReport;

/**
 * Loads the classes that a client uses on a connection, so that run.sh can write an archive of them: end-to-end tests
 * start hundreds of Java programs, which spend most of their time on loading classes.
 */
public final class ArchiveTraining {
    private ArchiveTraining() {}

    /** Runs one connection against a played gateway. */
    public static void main(String[] arguments) throws Exception {
        try (PlayedGateway gateway = new PlayedGateway(PlayedGateway.Keys.RIGHT)) {
            String store = Files.createTempDirectory("archive-training").resolve("store").toString();
            Thread device = new Thread(() -> {
                try {
                    ConformanceDriver.main(new String[] {
                        "--host", "127.0.0.1", "--port", Integer.toString(gateway.port()), "--ca",
                        gateway.authority(), "--instance", "i", "--device", "d", "--user", "u", "--session", "s",
                        "--store", store, "--app-version", "1"});
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            device.setDaemon(true);
            device.start();
            PlayedGateway.Connection connection = gateway.open();
            connection.send(PlayedClient.push(ChannelKind.USER, 0, 1));
            connection.find(ConfirmReport.class, report -> !report.channels.isEmpty());
            System.exit(0);
        }
    }
}
