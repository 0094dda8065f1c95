package org.mobilesync.internal.store;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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

    /**
     * The lock files of this process. A second client must not open the file of the first one: on POSIX systems the
     * close of any channel on a file releases all locks that the process has on it.
     */
    private static final Set<Path> LOCKED = ConcurrentHashMap.newKeySet();

    private final FileChannel channel;
    private final Path file;
    private boolean isReleased;

    private StoreLock(FileChannel channel, Path file) {
        this.channel = channel;
        this.file = file;
    }

    /**
     * Acquires the lock of the store at the path. Waits at most 1 s.
     *
     * @throws SyncException STORE_IN_USE when another client holds it, STORE when the file cannot be created
     */
    static StoreLock acquire(String path) {
        try {
            long start = System.nanoTime();
            Path file = lockFile(path);
            while (!LOCKED.add(file)) pause(path, start);
            FileChannel channel = null;
            boolean isAcquired = false;
            try {
                channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                while (!isLocked(channel)) pause(path, start);
                isAcquired = true;
                return new StoreLock(channel, file);
            } finally {
                if (!isAcquired) release(channel, file);
            }
        } catch (IOException error) {
            throw new SyncException(SyncException.Code.STORE,
                "the file " + path + ".lock cannot be locked; check folder, space and access rights", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new SyncException(SyncException.Code.STORE,
                "the wait for the store " + path + " was interrupted; create the client again", error);
        }
    }

    /** Returns the lock file under the real path of its folder, so that each file has one name. */
    private static Path lockFile(String path) throws IOException {
        Path file = Paths.get(path + ".lock").toAbsolutePath();
        return file.getParent().toRealPath().resolve(file.getFileName());
    }

    private static void pause(String path, long start) throws InterruptedException {
        if (System.nanoTime() - start > LONGEST_WAIT_NANOS) {
            throw new SyncException(SyncException.Code.STORE_IN_USE, "the store " + path
                + " is in use by another process, or by another client of this one; close that client, or give"
                + " each process a store and a device id of its own");
        }
        Thread.sleep(PAUSE_MS);
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
    public synchronized void close() {
        if (isReleased) return;
        isReleased = true;
        release(channel, file);
    }

    private static void release(FileChannel channel, Path file) {
        try {
            if (channel != null) channel.close();
        } catch (IOException error) {
            // The kernel releases the lock at the latest when the process ends.
        } finally {
            LOCKED.remove(file);
        }
    }
}
