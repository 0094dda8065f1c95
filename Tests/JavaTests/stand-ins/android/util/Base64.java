package android.util;

/** A stand-in for Android's class. */
public final class Base64 {
    /** The usual form. */
    public static final int DEFAULT = 0;

    private Base64() {}

    /** Decodes a text. */
    public static byte[] decode(String text, int flags) {
        return java.util.Base64.getDecoder().decode(text);
    }
}
