package org.mobilesync.internal;

/** The device's clocks. Tests play them. */
public interface Clock {
    /** The clocks of the operating system. */
    Clock SYSTEM = new Clock() {
        @Override
        public long nanoTime() {
            return System.nanoTime();
        }

        @Override
        public long wallMs() {
            return System.currentTimeMillis();
        }
    };

    /** Returns a time in nanoseconds that never goes back. */
    long nanoTime();

    /** Returns the milliseconds since 1970; the user can set this clock. */
    long wallMs();
}
