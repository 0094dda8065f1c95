package com.mpaas.mss.adapter.api;

import android.app.Application;
import android.content.Context;
import com.alipay.mobile.rome.longlinkservice.ConnectionListener;
import com.alipay.mobile.rome.longlinkservice.ISyncCallback;
import com.alipay.mobile.rome.longlinkservice.syncmodel.SyncMessage;
import org.mobilesync.android.AndroidPlatform;
import org.mobilesync.guide.GuideClient;

/**
 * The guide's Android API over {@code SyncClient}: the same calls in the same order (K10).
 *
 * <p>Call {@link #setup}, {@link #initialize} and {@link #registerBiz}. Then call {@link #appToForeground} whenever the
 * app enters the foreground, which connects, and {@link #appToBackground} whenever it leaves the foreground, which
 * disconnects at once. Other calls before {@code initialize} have no effect, and are logged once. All methods can be
 * called on any thread and do not wait for the network.
 */
public final class MPSync {
    private MPSync() {}

    /** Sets the application, whose assets have {@code meta.config}. */
    public static void setup(Application application) {
        GuideClient.shared().setUp(new AndroidPlatform(application));
    }

    /** Opens the local store once, without a connection. A failure is logged, and the app can call again. */
    public static void initialize(Context context) {
        GuideClient.shared().start(new AndroidPlatform(context));
    }

    /** Reports that the app is in the foreground. The client connects, and connects again after a lost connection. */
    public static void appToForeground() {
        GuideClient.shared().setForeground(true);
    }

    /** Reports that the app has left the foreground. The client disconnects at once. */
    public static void appToBackground() {
        GuideClient.shared().setForeground(false);
    }

    /**
     * Binds the user of {@code MPLogger.setUserId} with a session. Another bound user is unbound first.
     *
     * @param sessionId the user session that the tenant checks; null means {@code SESSION_DEMO}
     * @return false before {@code initialize}, without a user id, or when an id is invalid
     */
    public static boolean updateUserInfo(String sessionId) {
        return GuideClient.shared().bind(sessionId);
    }

    /** Signs the user out. The user's data waits until the user is bound again. */
    public static void clearUserInfo() {
        GuideClient.shared().unbind();
    }

    /** Sets the callback for the data of a Sync ID, and replaces an earlier one. Waiting data follows in order. */
    public static void registerBiz(String biz, ISyncCallback callback) {
        GuideClient.shared().register(biz, callback);
    }

    /** Removes the callback of a Sync ID. Its data waits in the local store, and its resend ladder stops. */
    public static void unregisterBiz(String biz) {
        GuideClient.shared().unregister(biz);
    }

    /** Confirms that the app has processed a message. Its data does not come again. */
    public static void reportMsgReceived(SyncMessage syncMessage) {
        GuideClient.shared().confirm(syncMessage);
    }

    /** Returns whether the gateway has accepted this device on a connection that is open. */
    public static boolean isConnected() {
        return GuideClient.shared().isConnected();
    }

    /** Adds a listener of the connection's status. */
    public static void addConnectionListener(ConnectionListener listener) {
        GuideClient.shared().addConnectionListener(listener);
    }

    /** Removes a listener of the connection's status. */
    public static void removeConnectionListener(ConnectionListener listener) {
        GuideClient.shared().removeConnectionListener(listener);
    }
}
