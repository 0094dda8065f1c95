package org.mobilesync.guide;

import java.io.IOException;
import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.internal.Clock;

/** The services of the app's platform for the guide's API. {@code AndroidPlatform} implements it. */
public interface GuidePlatform {
    /** Returns the content of a file that the app was built with; null when the app has none of this name. */
    byte[] asset(String name) throws IOException;

    /** Returns a folder for the device id and the local store, which exists. */
    String folder() throws IOException;

    /**
     * Returns a text that only apps with this app's signing key can read on this device, and that stays the same when
     * the app is installed again. The first device id and its secret are derived from it (K5). Null when the platform
     * has none.
     */
    String deviceSeed();

    /** Returns the opener of the local store. */
    DatabaseOpener database();

    /** Returns the device's clocks. */
    Clock clock();

    /** Returns the version of the app in dotted numbers; empty when it is not known. */
    String appVersion();

    /** Returns the version of the operating system. */
    String osVersion();
}
