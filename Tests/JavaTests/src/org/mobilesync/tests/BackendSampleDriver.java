package org.mobilesync.tests;

import static org.mobilesync.tests.StackDevice.check;

import com.example.push.DevicePush;
import com.example.push.GlobalPush;
import com.example.push.UserPush;
import org.mobilesync.SyncTransport;
import org.mobilesync.backend.BackendClient;

/**
 * Runs the backend samples against a running service, and checks that a device receives their pushes.
 *
 * <p>Arguments: {@code API GATEWAY_PORT CA INSTANCE}.
 */
public final class BackendSampleDriver {
    private BackendSampleDriver() {}

    /** Runs the samples. */
    public static void main(String[] arguments) throws Exception {
        String api = arguments[0];
        String instance = arguments[3];
        String name = "sample-" + Long.toHexString(System.nanoTime());
        check("NOT_ONLINE", UserPush.push(api, instance, name, name));
        check("NOT_ONLINE", DevicePush.push(api, instance, name + "-d", name));
        check("SUCCESS", GlobalPush.push(api, instance, name));
        check("DUPLICATED_BIZ_ID", GlobalPush.push(api, instance, name));
        StackDevice device = StackDevice.make(arguments[1], arguments[2], instance, name + "-d", SyncTransport.PLAIN);
        try {
            device.show("UCHAT");
            device.open(name);
            check("{\"name\":\"Zoë\",\"note\":\"你好\"}", device.next().text());
            System.out.println("pass the single push to a user");
            device.show("DEVICE-LOCK");
            check("lock", device.next().text());
            System.out.println("pass the single push to a device, with every parameter");
            device.show("GLOBAL-SDK-CONFIG");
            String expected = "{\"push\":\"" + name + "\"}";
            // Other tests push to all devices too.
            String text = device.next().text();
            while (!text.equals(expected)) text = device.next().text();
            System.out.println("pass the global push");
        } finally {
            device.client.close();
            // Devices of later tests on the same stack would receive it.
            BackendClient.builder(api, instance).attempts(8).build().recall("GLOBAL-SDK-CONFIG", null, name);
        }
    }
}
