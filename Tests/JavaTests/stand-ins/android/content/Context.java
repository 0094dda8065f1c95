package android.content;

import java.io.File;

/** A stand-in for Android's class: an app whose assets and files are in one folder. */
public class Context {
    private File folder = new File(".");

    /** Sets the folder, which a test has made. */
    public void attachFolder(File newFolder) {
        folder = newFolder;
    }

    /** Returns what stays the same when this app is installed again; null without such a text. */
    public String deviceSeed() {
        return null;
    }

    /** Returns the folder of this app. */
    public File folder() {
        return folder;
    }
}
