package com.example.sync;

import android.app.Activity;
import android.os.Bundle;
import android.text.TextUtils;
import android.util.Base64;
import android.util.Log;
import com.alipay.mobile.rome.longlinkservice.ConnectionListener;
import com.alipay.mobile.rome.longlinkservice.ISyncCallback;
import com.alipay.mobile.rome.longlinkservice.syncmodel.SyncMessage;
import com.mpaas.mas.adapter.api.MPLogger;
import com.mpaas.mobile.rome.longlinkservice.ConnectionEvent;
import com.mpaas.mss.adapter.api.MPSync;
import com.ut.device.UTDevice;
import java.nio.charset.StandardCharsets;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** The screen of the app: it shows the data of one Sync ID, as the guide's Android sample does. */
public class SampleActivity extends Activity implements ISyncCallback {
    private static final String TAG = "SampleActivity";

    private final ConnectionListener connectionListener = new ConnectionListener() {
        @Override
        public void onConnectionStateChanged(ConnectionEvent connectionEvent) {
            Log.d(TAG, "connection: " + connectionEvent.getConnectionStateName());
        }
    };

    @Override
    protected void onCreate(Bundle savedInstanceState) {
        super.onCreate(savedInstanceState);
        MPSync.initialize(this);
        MPSync.addConnectionListener(connectionListener);
        Log.d(TAG, "device id: " + UTDevice.getUtdid(this));
        register();
    }

    @Override
    protected void onResume() {
        super.onResume();
        MPSync.appToForeground();
    }

    @Override
    protected void onStop() {
        super.onStop();
        MPSync.appToBackground();
    }

    /** Registers for the Sync ID. */
    public void register() {
        MPSync.registerBiz("UCHAT", this);
    }

    /** Ends the registration. */
    public void unregister() {
        MPSync.unregisterBiz("UCHAT");
    }

    /** The user has signed in. */
    public boolean signIn(String userId, String sessionId) {
        MPLogger.setUserId(userId);
        return MPSync.updateUserInfo(sessionId);
    }

    /** The user has signed out. */
    public void signOut() {
        MPSync.clearUserInfo();
    }

    @Override
    public void onReceiveMessage(SyncMessage syncMessage) {
        if (syncMessage == null || TextUtils.isEmpty(syncMessage.msgData)) return;
        try {
            JSONArray items = new JSONArray(syncMessage.msgData);
            for (int index = 0; index < items.length(); index++) {
                JSONObject item = items.getJSONObject(index);
                String data = item.optString("pl");
                boolean isBinary = "1".equals(item.optString("isB"));
                byte[] bytes = isBinary
                    ? Base64.decode(data, Base64.DEFAULT) : data.getBytes(StandardCharsets.UTF_8);
                show(item.getLong("mk"), item.getLong("mct"), isBinary, bytes);
            }
            MPSync.reportMsgReceived(syncMessage);
        } catch (JSONException error) {
            Log.d(TAG, "the message is not JSON: " + error);
        }
    }

    /** Shows one item. */
    protected void show(long id, long createdAt, boolean isBinary, byte[] data) {
        Log.d(TAG, "item " + id + " with " + data.length + " bytes");
    }
}
