package org.mobilesync.android;

import android.content.Context;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.guide.GuidePlatform;
import org.mobilesync.internal.Clock;

/** A stand-in for the class of the same name in Shared/Client/Java/src/android, which needs Android's SDK. */
public final class AndroidPlatform implements GuidePlatform {
    private final Context context;

    /** Creates the platform of an app. */
    public AndroidPlatform(Context context) {
        this.context = context;
    }

    @Override
    public byte[] asset(String name) throws IOException {
        File file = new File(context.folder(), name);
        return file.exists() ? Files.readAllBytes(file.toPath()) : null;
    }

    @Override
    public String folder() {
        return context.folder().getPath();
    }

    @Override
    public String deviceSeed() {
        return context.deviceSeed();
    }

    @Override
    public DatabaseOpener database() {
        return JdbcDatabase::open;
    }

    @Override
    public Clock clock() {
        return Clock.SYSTEM;
    }

    @Override
    public String appVersion() {
        return "1.0.0";
    }

    @Override
    public String osVersion() {
        return "";
    }
}
