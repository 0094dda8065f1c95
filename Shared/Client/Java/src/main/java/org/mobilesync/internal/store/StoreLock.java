package org.mobilesync.internal.store;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import org.mobilesync.SyncException;

/**
 * Limits the file of a store to one client, with a lock of the operating system on a file beside it.
 *
 * <p>Two clients on one store would hand the same oplogs out twice. The kernel releases the lock when the process ends,
 * so no cleaning is needed.
 */
final class StoreLock implements AutoCloseable {
    /** The longest wait for another client that is about to release the store. */
    private static final long LONGEST_WAIT_NANOS = 1_000_000_000L;
    private static final long PAUSE_MS = 10;

    private final FileChannel channel;

    private StoreLock(FileChannel channel) {
        this.channel = channel;
    }

    /**
     * Acquires the lock of the store at the path. Waits at most 1 s.
     *
     * @throws SyncException STORE_IN_USE when another client holds it, STORE when the file cannot be created
     */
    static StoreLock acquire(String path) {
        FileChannel channel = null;
        try {
            channel = FileChannel.open(
                Paths.get(path + ".lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            long start = System.nanoTime();
            while (!isLocked(channel)) {
                if (System.nanoTime() - start > LONGEST_WAIT_NANOS) {
                    channel.close();
                    throw new SyncException(SyncException.Code.STORE_IN_USE, "the store " + path
                        + " is in use by another process, or by another client of this one; close that client, or give"
                        + " each process a store and a device id of its own");
                }
                Thread.sleep(PAUSE_MS);
            }
            return new StoreLock(channel);
        } catch (IOException error) {
            throw new SyncException(SyncException.Code.STORE,
                "the file " + path + ".lock cannot be locked; check folder, space and access rights", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new SyncException(SyncException.Code.STORE,
                "the wait for the store " + path + " was interrupted; create the client again", error);
        }
    }

    private static boolean isLocked(FileChannel channel) throws IOException {
        try {
            // Closing the channel releases the lock.
            FileLock lock = channel.tryLock();
            return lock != null;
        } catch (OverlappingFileLockException error) {
            return false;
        }
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException error) {
            // The kernel releases the lock at the latest when the process ends.
        }
    }
}
