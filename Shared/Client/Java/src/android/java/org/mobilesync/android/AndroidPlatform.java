// Not compiled here: it needs Android's SDK. Tests/JavaTests/stand-ins has a class of this name for the tests.
package org.mobilesync.android;

import android.content.Context;
import android.content.pm.PackageManager;
import android.os.Build;
import android.provider.Settings;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.guide.GuidePlatform;
import org.mobilesync.internal.Clock;

/** The app's platform: Android 8 (API level 26) or newer. */
public final class AndroidPlatform implements GuidePlatform {
    private static final int BUFFER_BYTES = 4_096;

    private final Context context;

    /** Creates the platform of an app. */
    public AndroidPlatform(Context context) {
        this.context = context.getApplicationContext() == null ? context : context.getApplicationContext();
    }

    @Override
    public byte[] asset(String name) throws IOException {
        try (InputStream in = context.getAssets().open(name)) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] buffer = new byte[BUFFER_BYTES];
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) out.write(buffer, 0, count);
            return out.toByteArray();
        } catch (FileNotFoundException missing) {
            return null;
        }
    }

    @Override
    public String folder() throws IOException {
        // Not part of backups: a restored copy would give two devices the same device id (K5).
        File folder = new File(context.getNoBackupFilesDir(), "mobile-sync");
        if (!folder.isDirectory() && !folder.mkdirs()) throw new IOException("cannot make " + folder);
        return folder.getPath();
    }

    /**
     * Returns Android's id for this device, user and signing key, with the name of the app. It stays the same when the
     * app is installed again, and changes when the device is reset or another key signs the app.
     */
    @Override
    public String deviceSeed() {
        String id = Settings.Secure.getString(context.getContentResolver(), Settings.Secure.ANDROID_ID);
        return id == null || id.isEmpty() ? null : id + ':' + context.getPackageName();
    }

    @Override
    public DatabaseOpener database() {
        return AndroidDatabase::open;
    }

    @Override
    public Clock clock() {
        return new AndroidClock();
    }

    @Override
    public String appVersion() {
        try {
            String name = context.getPackageManager().getPackageInfo(context.getPackageName(), 0).versionName;
            return name == null ? "" : name;
        } catch (PackageManager.NameNotFoundException missing) {
            return "";
        }
    }

    @Override
    public String osVersion() {
        return Build.VERSION.RELEASE;
    }
}
