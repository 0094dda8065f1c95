package org.mobilesync.internal.client;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.logging.Level;
import org.mobilesync.SyncException;

/** The thread that owns a client's store and state machine. It performs one event at a time. */
final class EventLoop {
    private final ScheduledThreadPoolExecutor executor;
    private final Consumer<Throwable> onFailure;
    /** The results that are not complete; the end of the loop completes them. */
    private final Set<CompletableFuture<?>> results = ConcurrentHashMap.newKeySet();
    private volatile Thread thread;

    /**
     * Creates the thread.
     *
     * @param onFailure receives the error of an event that failed unexpectedly
     */
    EventLoop(Consumer<Throwable> onFailure) {
        this.onFailure = onFailure;
        executor = new ScheduledThreadPoolExecutor(1, this::makeThread) {
            @Override
            protected void terminated() {
                super.terminated();
                for (CompletableFuture<?> result : results) result.completeExceptionally(closed());
            }
        };
        executor.setRemoveOnCancelPolicy(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    private Thread makeThread(Runnable work) {
        Thread made = new Thread(work, "mobile-sync");
        made.setDaemon(true);
        thread = made;
        return made;
    }

    /** Returns whether the caller runs on the loop's thread. */
    boolean isCurrentThread() {
        return Thread.currentThread() == thread;
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
        } catch (Throwable error) {
            // Otherwise the executor would drop the error without a trace.
            report(error);
        }
    }

    private void report(Throwable error) {
        try {
            onFailure.accept(error);
        } catch (Throwable second) {
            Events.LOG.log(Level.SEVERE, "handling a failed event of the client failed", second);
        }
    }

    /** Returns a result that the end of the loop completes with CLOSED if nothing has completed it before. */
    <T> CompletableFuture<T> result() {
        CompletableFuture<T> result = new CompletableFuture<>();
        results.add(result);
        result.whenComplete((value, error) -> results.remove(result));
        return result;
    }

    /** Performs a call of the app, and completes the result with its value or its SyncException. */
    <T> CompletableFuture<T> submit(Supplier<T> call) {
        CompletableFuture<T> result = result();
        try {
            executor.execute(() -> {
                try {
                    result.complete(call.get());
                } catch (SyncException error) {
                    result.completeExceptionally(error);
                } catch (Throwable error) {
                    result.completeExceptionally(error);
                    report(error);
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
