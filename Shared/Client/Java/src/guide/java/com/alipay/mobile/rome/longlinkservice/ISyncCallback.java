package com.alipay.mobile.rome.longlinkservice;

import com.alipay.mobile.rome.longlinkservice.syncmodel.SyncMessage;

/** Receives the data of one Sync ID; the callback of the guide's Android API (K10). */
public interface ISyncCallback {
    /**
     * Called with new data, for one message after another, on a thread of the library. After the app has processed the
     * message, it calls {@code MPSync.reportMsgReceived}; otherwise the data comes again.
     */
    void onReceiveMessage(SyncMessage syncMessage);
}
