package android.app;

import android.content.Context;

/** A stand-in for Android's class. */
public class Application extends Context {
    /** Called when the process of the app has started. */
    public void onCreate() {}
}
