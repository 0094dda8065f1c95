package org.mobilesync.tests;

import com.example.sync.SampleActivity;
import com.example.sync.SampleApplication;
import com.mpaas.mss.adapter.api.MPSync;
import com.ut.device.UTDevice;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * Runs the rebuilt sample as Android would, by commands on standard input: {@code foreground}, {@code background},
 * {@code register}, {@code unregister}, {@code sign-in USER [SESSION]}, {@code sign-out}, {@code connected},
 * {@code device}. It prints a line for each answer, and for each item that the sample shows:
 * {@code shown ID CREATED_AT BINARY BASE64}. The argument is the folder with {@code meta.config}.
 */
public final class SampleDriver {
    private SampleDriver() {}

    /** Runs the program until the end of standard input. */
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        SampleApplication application = new SampleApplication();
        application.attachFolder(folder);
        application.onCreate();
        SampleActivity activity = new SampleActivity() {
            @Override
            protected void show(long id, long createdAt, boolean isBinary, byte[] data) {
                print("shown " + id + " " + createdAt + " " + isBinary + " "
                    + Base64.getEncoder().encodeToString(data));
            }
        };
        activity.attachFolder(folder);
        activity.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) perform(line.split(" "), activity);
        // The process ends without a call of the library, as a phone ends an app.
        Runtime.getRuntime().halt(0);
    }

    private static void perform(String[] command, SampleActivity activity) {
        switch (command[0]) {
            case "foreground":
                activity.resume();
                break;
            case "background":
                activity.stop();
                break;
            case "register":
                activity.register();
                break;
            case "unregister":
                activity.unregister();
                break;
            case "sign-in":
                print("signed-in " + activity.signIn(command[1], command.length > 2 ? command[2] : null));
                break;
            case "sign-out":
                activity.signOut();
                break;
            case "connected":
                print("connected " + MPSync.isConnected());
                break;
            case "device":
                print("device " + UTDevice.getUtdid(activity));
                break;
            default:
                throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    private static synchronized void print(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
