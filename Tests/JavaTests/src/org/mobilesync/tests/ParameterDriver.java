package org.mobilesync.tests;

import static org.mobilesync.tests.StackDevice.check;
import static org.mobilesync.tests.StackDevice.eventually;

import java.util.List;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncParameter;
import org.mobilesync.SyncParameterKind;
import org.mobilesync.SyncParameterValue;
import org.mobilesync.SyncTransport;
import org.mobilesync.backend.BackendClient;
import org.mobilesync.backend.Push;

/**
 * Uses subscription parameters against a running service, with a Sync ID whose filter is {@code region == $region} and
 * whose default region is north. It ends with a status above 0 at the first check that fails.
 *
 * <p>Arguments: {@code API GATEWAY_PORT CA INSTANCE BIZ_TYPE}.
 */
public final class ParameterDriver {
    private final BackendClient backend;
    private final String bizType;
    private final String user = "parameter-" + Long.toHexString(System.nanoTime());
    private final StackDevice device;
    private volatile String refusal;

    private ParameterDriver(String[] arguments) throws Exception {
        backend = BackendClient.builder(arguments[0], arguments[3]).build();
        device =
            StackDevice.make(arguments[1], arguments[2], arguments[3], user + "-d", SyncTransport.PLAIN);
        bizType = arguments[4];
    }

    /** Runs the checks. */
    public static void main(String[] arguments) throws Exception {
        ParameterDriver driver = new ParameterDriver(arguments);
        try {
            driver.run();
        } finally {
            driver.device.client.close();
        }
    }

    private void push(String region, int number) {
        backend.push(Push.to(bizType, user, region + number).payload(region + number).attribute("region", region)
            .build());
    }

    private void set(String value, SyncParameterKind kind) throws Exception {
        device.client.setParameter(
            bizType, "region", value == null ? null : SyncParameterValue.text(value), kind).get();
    }

    private void run() throws Exception {
        device.client.addListener(new SyncEventListener() {
            @Override
            public void onParameterRefused(String reason) {
                refusal = reason;
            }
        });
        for (String region : new String[] {"north", "south", "west", "east"}) push(region, 1);
        device.show(bizType);
        device.open(user);
        check("north1", device.next().text());
        set("south", SyncParameterKind.CLIENT);
        check("south1", device.next().text());
        set("west", SyncParameterKind.SESSION);
        check("west1", device.next().text());
        push("south", 2);
        push("west", 2);
        check("west2", device.next().text());
        set(null, SyncParameterKind.SESSION);
        check("south2", device.next().text());
        System.out.println("pass values of the session and of the client");
        set("east", SyncParameterKind.SERVER);
        eventually("the service has stored the value", () -> {
            List<SyncParameter> all = device.client.parameters().get();
            return all.size() == 2 && !all.get(1).isPending();
        });
        set(null, SyncParameterKind.CLIENT);
        check("east1", device.next().text());
        device.client.setParameter(bizType, "unknown", SyncParameterValue.number(1), SyncParameterKind.SERVER).get();
        eventually("the service refuses an unknown name", () -> refusal != null);
        System.out.println("pass values of the server; refused: " + refusal);
        device.client.disconnect().get();
        device.open(user);
        push("north", 2);
        push("east", 2);
        check("east2", device.next().text());
        check(1, device.client.parameters().get().size());
        System.out.println("pass the server's value after another connect");
    }
}
