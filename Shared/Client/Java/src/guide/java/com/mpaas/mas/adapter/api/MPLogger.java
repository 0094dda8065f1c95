package com.mpaas.mas.adapter.api;

import org.mobilesync.guide.GuideClient;

/** Receives the signed-in user from apps that use the vendor's logging API. */
public final class MPLogger {
    private MPLogger() {}

    /** Sets the user for the next {@code MPSync.updateUserInfo}; null when no user is signed in. It binds nothing. */
    public static void setUserId(String userId) {
        GuideClient.shared().setUserId(userId);
    }

    /** Returns the user of {@link #setUserId}; null for none. */
    public static String getUserId() {
        return GuideClient.shared().userId();
    }
}
