package android.app;

import android.content.Context;
import android.os.Bundle;

/** A stand-in for Android's class. */
public class Activity extends Context {
    /** Called when the screen is made. */
    protected void onCreate(Bundle savedInstanceState) {}

    /** Called when the screen enters the foreground. */
    protected void onResume() {}

    /** Called when the screen leaves the foreground. */
    protected void onStop() {}

    /** Makes the screen, as Android does. */
    public final void start() {
        onCreate(new Bundle());
    }

    /** Brings the screen into the foreground, as Android does. */
    public final void resume() {
        onResume();
    }

    /** Takes the screen from the foreground, as Android does. */
    public final void stop() {
        onStop();
    }
}
