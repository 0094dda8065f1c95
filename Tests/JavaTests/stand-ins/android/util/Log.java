package android.util;

/** A stand-in for Android's class; it writes to standard error. */
public final class Log {
    private Log() {}

    /** Writes a line. */
    public static int d(String tag, String message) {
        System.err.println(tag + ": " + message);
        return 0;
    }
}
