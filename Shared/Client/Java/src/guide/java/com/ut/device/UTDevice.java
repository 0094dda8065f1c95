package com.ut.device;

import android.content.Context;
import org.mobilesync.android.AndroidPlatform;
import org.mobilesync.guide.GuideClient;

/** The device id of the guide (K5). */
public final class UTDevice {
    private UTDevice() {}

    /**
     * Returns the device's id, to which backends push device data. The first call makes it and stores it in the app's
     * files. It is the same across launches.
     */
    public static String getUtdid(Context context) {
        return GuideClient.shared().deviceId(new AndroidPlatform(context));
    }
}
