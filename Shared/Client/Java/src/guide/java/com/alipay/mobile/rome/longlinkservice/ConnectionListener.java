package com.alipay.mobile.rome.longlinkservice;

import com.mpaas.mobile.rome.longlinkservice.ConnectionEvent;

/** Receives the changes of the connection's status; a listener of the guide's Android API. */
public interface ConnectionListener {
    /** Called with each change, on a thread of the library. */
    void onConnectionStateChanged(ConnectionEvent connectionEvent);
}
