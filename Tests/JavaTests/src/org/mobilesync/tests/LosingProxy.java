package org.mobilesync.tests;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicInteger;

/** A proxy before the API that loses answers: it waits for the answer, and cuts the caller's connection instead. */
final class LosingProxy implements AutoCloseable {
    private final ServerSocket listener;
    private final int target;
    private final AtomicInteger left;
    private final AtomicInteger lost = new AtomicInteger();

    /** Loses the first answers, and passes on all later ones. */
    LosingProxy(int target, int answers) throws IOException {
        this.target = target;
        left = new AtomicInteger(answers);
        listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        start(this::accept);
    }

    String address() {
        return "http://127.0.0.1:" + listener.getLocalPort();
    }

    /** Returns the number of lost answers. */
    int lost() {
        return lost.get();
    }

    private static void start(Runnable work) {
        Thread thread = new Thread(work, "losing-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        while (true) {
            try {
                Socket caller = listener.accept();
                Socket api = new Socket("127.0.0.1", target);
                start(() -> relay(caller, api, false));
                start(() -> relay(api, caller, true));
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void relay(Socket from, Socket to, boolean isAnswer) {
        try (Socket source = from; Socket sink = to) {
            InputStream in = source.getInputStream();
            OutputStream out = sink.getOutputStream();
            byte[] part = new byte[8_192];
            for (int count = in.read(part); count >= 0; count = in.read(part)) {
                if (isAnswer && left.getAndUpdate(value -> Math.max(0, value - 1)) > 0) {
                    lost.incrementAndGet();
                    return;
                }
                out.write(part, 0, count);
            }
        } catch (IOException ended) {
            return;
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }
}
