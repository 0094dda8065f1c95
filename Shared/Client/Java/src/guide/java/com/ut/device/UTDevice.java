package com.ut.device;

import android.content.Context;
import org.mobilesync.android.AndroidPlatform;
import org.mobilesync.guide.GuideClient;

/** The device id of the guide (K5). */
public final class UTDevice {
    private UTDevice() {}

    /**
     * Returns the device's id, to which backends push device data. It is the same across launches, and on Android also
     * when the app is installed again.
     */
    public static String getUtdid(Context context) {
        return GuideClient.shared().deviceId(new AndroidPlatform(context));
    }
}
