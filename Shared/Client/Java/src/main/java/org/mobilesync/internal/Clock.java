package org.mobilesync.internal;

/** The device's clocks. Tests play them; {@code org.mobilesync.android.AndroidClock} is for Android. */
public interface Clock {
    /** The clocks of a JVM. On Android the steady one would not count the time in deep sleep. */
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
