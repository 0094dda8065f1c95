package org.mobilesync.backend;

import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLContext;
import org.mobilesync.SyncAppKey;
import org.mobilesync.SyncException;

/**
 * Pushes data to the users and devices of one instance.
 *
 * <p>Each call blocks until its outcome is known, or the attempts are used up. The client repeats a call that had no
 * answer, or a retryable one, with the same thirdMsgId, so that the push is stored once. Safe for concurrent use; one
 * client serves a whole process.
 */
public final class BackendClient {
    private static final int LARGEST_BATCH = 500;

    private final String instanceId;
    private final int attempts;
    private final ApiConnection connection;
    private final Retries.Sleeper sleeper;

    private BackendClient(Builder settings, Retries.Sleeper sleeper) {
        instanceId = settings.instanceId;
        attempts = settings.attempts;
        this.sleeper = sleeper;
        connection = new ApiConnection(settings.address,
            settings.key == null ? null : new RequestSigner(settings.key),
            settings.sslContext == null ? null : settings.sslContext.getSocketFactory(), settings.timeoutMs);
    }

    /**
     * Begins a client.
     *
     * @param address scheme, host and port of the API, for example {@code https://push.example.com}
     * @param instanceId the instance: the app in one environment, {@code <workspaceId>_<appId>}
     */
    public static Builder builder(String address, String instanceId) {
        return new Builder(address, instanceId);
    }

    /** Collects the settings. {@link #build} checks them. */
    public static final class Builder {
        private static final int DEFAULT_TIMEOUT_MS = 10_000;
        /** With the pauses between them they take at least 7.7 s: longer than the 6 s of a lost gateway's lease. */
        private static final int DEFAULT_ATTEMPTS = 6;
        private static final int MOST_ATTEMPTS = 20;

        private final String address;
        private final String instanceId;
        private SyncAppKey key;
        private SSLContext sslContext;
        private int timeoutMs = DEFAULT_TIMEOUT_MS;
        private int attempts = DEFAULT_ATTEMPTS;

        private Builder(String address, String instanceId) {
            this.address = address.endsWith("/") ? address.substring(0, address.length() - 1) : address;
            this.instanceId = instanceId;
        }

        /**
         * The backend key that signs the calls; none by default.
         *
         * @param id the key's id
         * @param secret the secret in Base64; {@code mssctl key create} prints both
         * @throws BackendException INVALID_ARGUMENT when the secret is not Base64 of at least 16 bytes
         */
        public Builder key(String id, String secret) {
            try {
                key = new SyncAppKey(id, secret);
                return this;
            } catch (SyncException error) {
                throw new BackendException(BackendException.Code.INVALID_ARGUMENT, error.getMessage());
            }
        }

        /** Trusted authorities and client certificate of HTTPS; by default those of the platform. */
        public Builder sslContext(SSLContext value) {
            sslContext = value;
            return this;
        }

        /** The longest wait for the connection, and then for the answer, in milliseconds; 10,000 by default. */
        public Builder timeoutMs(int value) {
            timeoutMs = value;
            return this;
        }

        /** The most attempts of one call, 1 to 20; 6 by default. */
        public Builder attempts(int value) {
            attempts = value;
            return this;
        }

        /**
         * Returns the client.
         *
         * @throws BackendException INVALID_ARGUMENT; the message names the setting and its expected form
         */
        public BackendClient build() {
            return build(Thread::sleep);
        }

        BackendClient build(Retries.Sleeper sleeper) {
            Push.checkId(instanceId, "instanceId");
            require(address.matches("https?://[^/?#@ ]+"),
                "address must be scheme, host and port, for example https://push.example.com, not " + address);
            require(timeoutMs > 0, "timeoutMs must be above 0");
            require(attempts >= 1 && attempts <= MOST_ATTEMPTS, "attempts must be 1 to 20");
            return new BackendClient(this, sleeper);
        }

        private static void require(boolean isValid, String message) {
            if (!isValid) throw new BackendException(BackendException.Code.INVALID_ARGUMENT, message);
        }
    }

    /**
     * Pushes to a user, to a device or to all.
     *
     * @throws BackendException when the service did not accept the push, or the outcome is unknown
     */
    public PushResult push(Push push) {
        return new PushResult(
            repeat(post(push.isGlobal() ? "global" : "single", push.json(), push.description())));
    }

    /**
     * Pushes to users or devices in one call. Pushes to one target are stored in their order. The call is no
     * transaction: some can be accepted and others not.
     *
     * @param pushes 1 to 500, none of them to all
     * @return a result for each push, in their order. A refused push has an error and does not affect the others.
     *     When the thread is interrupted between two attempts, the pushes without a final result have their last error
     * @throws BackendException when no push has a result, for example because the signature is wrong
     */
    public List<PushResult> push(List<Push> pushes) {
        checkBatch(pushes);
        BatchProgress progress = new BatchProgress(pushes);
        Retries retries = new Retries(attempts, sleeper);
        while (true) {
            ApiCall call = post("batch", progress.json(), progress.description());
            ApiAnswer answer = connection.attempt(call);
            progress.apply(answer);
            if (progress.isDone() || !hasNext(retries, answer, call, progress)) return progress.results();
        }
    }

    /** Waits for the next attempt. An interrupt must not discard the results of pushes that were stored. */
    private static boolean hasNext(Retries retries, ApiAnswer answer, ApiCall call, BatchProgress progress) {
        try {
            return retries.next(answer, call);
        } catch (BackendException interrupted) {
            if (progress.hasResults()) return false;
            throw interrupted;
        }
    }

    private static void checkBatch(List<Push> pushes) {
        if (pushes.isEmpty() || pushes.size() > LARGEST_BATCH) {
            throw new BackendException(BackendException.Code.INVALID_ARGUMENT,
                "a batch has 1 to " + LARGEST_BATCH + " pushes, not " + pushes.size());
        }
        for (Push push : pushes) {
            if (push.isGlobal()) {
                throw new BackendException(BackendException.Code.INVALID_ARGUMENT,
                    push.description() + " cannot be in a batch: push it alone");
            }
        }
    }

    /**
     * Recalls a push: no device that has not stored it receives it, and apps that have it are told.
     *
     * @param linkToken the user or device of the push; null for a global push
     * @return the id of the recalled oplog
     * @throws BackendException REFUSED when there is no such push; INVALID_ARGUMENT for an id that is not 1 to 100
     *     characters long
     */
    public long recall(String bizType, String linkToken, String thirdMsgId) {
        checkTarget(bizType, linkToken, thirdMsgId);
        Map<String, String> target = Push.target(bizType, linkToken, thirdMsgId);
        return repeat(post("recall", Push.object(target), "the recall of " + thirdMsgId + " of " + bizType))
            .number("oplogId");
    }

    /**
     * Explains why a push did or did not arrive.
     *
     * @param linkToken the user or device of the push; null for a global push
     * @throws BackendException REFUSED when there is no such push; INVALID_ARGUMENT for an id that is not 1 to 100
     *     characters long
     */
    public PushTrace trace(String bizType, String linkToken, String thirdMsgId) {
        checkTarget(bizType, linkToken, thirdMsgId);
        return new PushTrace(repeat(ApiCall.get("trace", "the trace of " + thirdMsgId + " of " + bizType,
            "bizType", bizType, "instanceId", instanceId, "linkToken", linkToken, "thirdMsgId", thirdMsgId)));
    }

    private static void checkTarget(String bizType, String linkToken, String thirdMsgId) {
        Push.checkId(bizType, "bizType");
        if (linkToken != null) Push.checkId(linkToken, "linkToken");
        Push.checkId(thirdMsgId, "thirdMsgId");
    }

    private ApiCall post(String path, String json, String description) {
        return ApiCall.post(path, instanceId, json, description);
    }

    /** Makes a call until its outcome is known, and returns the answer of a success. */
    private ApiAnswer repeat(ApiCall call) {
        Retries retries = new Retries(attempts, sleeper);
        while (true) {
            ApiAnswer answer = connection.attempt(call);
            if (answer.isSuccess() && answer.isFromApi()) return answer;
            if (retries.next(answer, call)) continue;
            throw BackendException.of(call.description, answer, retries.done(), retries.isOutcomeUnknown());
        }
    }
}
