// Not compiled here: it needs Android's SDK. The tests use Clock.SYSTEM and a played clock.
package org.mobilesync.android;

import android.os.SystemClock;
import org.mobilesync.internal.Clock;

/**
 * Android's clocks. The steady clock counts the time in deep sleep; {@code System.nanoTime} does not, so back-offs,
 * resends and timeouts would last longer by the time that the device slept.
 */
public final class AndroidClock implements Clock {
    @Override
    public long nanoTime() {
        return SystemClock.elapsedRealtimeNanos();
    }

    @Override
    public long wallMs() {
        return System.currentTimeMillis();
    }
}
