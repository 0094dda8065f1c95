package com.example.sync;

import android.app.Application;
import com.mpaas.mss.adapter.api.MPSync;

/** An app as the guide describes it. It names only the classes of Android and of the vendor. */
public class SampleApplication extends Application {
    @Override
    public void onCreate() {
        super.onCreate();
        MPSync.setup(this);
    }
}
