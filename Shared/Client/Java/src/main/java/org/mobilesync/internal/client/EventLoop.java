package org.mobilesync.internal.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.mobilesync.SyncException;

/** The thread that owns a client's store and state machine. It performs one event at a time. */
final class EventLoop {
    private final ScheduledThreadPoolExecutor executor;
    private final Consumer<RuntimeException> onFailure;

    /**
     * Creates the thread.
     *
     * @param onFailure receives the error of an event that failed unexpectedly
     */
    EventLoop(Consumer<RuntimeException> onFailure) {
        this.onFailure = onFailure;
        executor = new ScheduledThreadPoolExecutor(1, work -> {
            Thread thread = new Thread(work, "mobile-sync");
            thread.setDaemon(true);
            return thread;
        });
        executor.setRemoveOnCancelPolicy(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    /** Returns the error of a call on a closed client. */
    static SyncException closed() {
        return new SyncException(SyncException.Code.CLOSED, "the client is closed; create another one");
    }

    /** Performs an event soon; does nothing after the end. */
    void execute(Runnable event) {
        try {
            executor.execute(() -> perform(event));
        } catch (RejectedExecutionException error) {
            // The client is closed, and its events have no receiver.
        }
    }

    /** Performs an event after a delay. */
    ScheduledFuture<?> schedule(Runnable event, long delayMs) {
        return executor.schedule(() -> perform(event), Math.max(0, delayMs), TimeUnit.MILLISECONDS);
    }

    private void perform(Runnable event) {
        try {
            event.run();
        } catch (RuntimeException error) {
            onFailure.accept(error);
        }
    }

    /** Performs a call of the app, and completes the result with its value or its SyncException. */
    <T> CompletableFuture<T> submit(Supplier<T> call) {
        CompletableFuture<T> result = new CompletableFuture<>();
        try {
            executor.execute(() -> {
                try {
                    result.complete(call.get());
                } catch (RuntimeException error) {
                    result.completeExceptionally(error);
                }
            });
        } catch (RejectedExecutionException error) {
            result.completeExceptionally(closed());
        }
        return result;
    }

    /** Performs the events up to now, and then no more. */
    void shutdown() {
        // As an event, so that the events before it can still plan others.
        execute(executor::shutdown);
    }

    /** Waits until the last event has ended. */
    boolean awaitEnd(long timeout, TimeUnit unit) throws InterruptedException {
        return executor.awaitTermination(timeout, unit);
    }
}
