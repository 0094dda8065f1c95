package android.text;

/** A stand-in for Android's class. */
public final class TextUtils {
    private TextUtils() {}

    /** Returns whether a text is null or empty. */
    public static boolean isEmpty(CharSequence text) {
        return text == null || text.length() == 0;
    }
}
