package org.mobilesync.internal.store;

import org.mobilesync.internal.Clock;

/**
 * The service's time and the time for signatures, as the device computes them (DeviceProtocol.md, Channels and Signed
 * connects). The local store keeps their differences from the device's clock.
 */
public final class ServiceClock {
    /** Offsets below 5 s are network latency; they are not persisted. */
    private static final long LATENCY_MS = 5_000;
    private static final long NANOS_PER_MS = 1_000_000;

    private final StoreFile file;
    private final Clock clock;
    /** The service's time that the last connection of this process received, and when; null before. */
    private Long receivedMs;
    private long receivedAtNanos;
    private Long clockOffsetMs;
    private Long signingOffsetMs;

    ServiceClock(StoreFile file, Clock clock) {
        this.file = file;
        this.clock = clock;
        Long[] offsets = file.access("reading the clock", () -> file.database().query(
            row -> new Long[] {row.isNull(0) ? null : row.getLong(0), row.isNull(1) ? null : row.getLong(1)},
            "SELECT clock_offset_ms, signing_offset_ms FROM store").get(0));
        clockOffsetMs = offsets[0];
        signingOffsetMs = offsets[1];
    }

    /** Returns the service's time, which decides validity; null before the first connection. */
    Long serviceTimeMs() {
        if (receivedMs != null) return receivedMs + (clock.nanoTime() - receivedAtNanos) / NANOS_PER_MS;
        return clockOffsetMs == null ? null : clock.wallMs() + clockOffsetMs;
    }

    /** Returns the device's time in milliseconds since 1970. */
    public long deviceTimeMs() {
        return clock.wallMs();
    }

    /**
     * Returns the time for signatures: the clock of the gateway that last refused a signature, else the service's time,
     * else the device's clock.
     */
    public long signingTimeMs() {
        if (signingOffsetMs != null) return clock.wallMs() + signingOffsetMs;
        Long service = serviceTimeMs();
        return service == null ? clock.wallMs() : service;
    }

    /** Records the clock of a gateway that has refused a signature. */
    public void setSigningTime(long timeMs) {
        signingOffsetMs = timeMs - clock.wallMs();
        file.change("storing the signing time",
            () -> file.database().execute("UPDATE store SET signing_offset_ms = ?", signingOffsetMs));
    }

    /** Records the service's time from a new connection. */
    public void setServiceTime(long timeMs) {
        receivedMs = timeMs;
        receivedAtNanos = clock.nanoTime();
        long offset = timeMs - clock.wallMs();
        boolean isLatency = clockOffsetMs != null && Math.abs(offset - clockOffsetMs) <= LATENCY_MS;
        if (isLatency) return;
        clockOffsetMs = offset;
        file.change("storing the clock offset",
            () -> file.database().execute("UPDATE store SET clock_offset_ms = ?", offset));
    }
}
