package org.mobilesync.backend;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import javax.net.ServerSocketFactory;

/** An API on a free port of the loopback interface that gives the answers of a test, in order. */
final class PlayedApi implements AutoCloseable {
    /** Ends the connection: instead of an answer, or behind a part of one. */
    static final String CUT = "\0";

    private final ServerSocket listener;
    private final String scheme;
    private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();
    private final List<Request> requests = new CopyOnWriteArrayList<>();

    /** A request as it arrived. */
    static final class Request {
        final String line;
        final Map<String, String> headers = new LinkedHashMap<>();
        String body = "";

        private Request(String line) {
            this.line = line;
        }
    }

    private PlayedApi(ServerSocketFactory sockets, String scheme, String... answers) throws IOException {
        this.scheme = scheme;
        this.answers.addAll(Arrays.asList(answers));
        listener = sockets.createServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        Thread thread = new Thread(this::accept, "played-api");
        thread.setDaemon(true);
        thread.start();
    }

    static PlayedApi of(String... answers) throws IOException {
        return new PlayedApi(ServerSocketFactory.getDefault(), "http", answers);
    }

    static PlayedApi secured(ServerSocketFactory sockets, String... answers) throws IOException {
        return new PlayedApi(sockets, "https", answers);
    }

    /** A response with this status and body, and further header lines. */
    static String response(int status, String body, String... headers) {
        StringBuilder response = new StringBuilder("HTTP/1.1 " + status + " Played\r\n");
        for (String header : headers) response.append(header).append("\r\n");
        int length = body.getBytes(StandardCharsets.UTF_8).length;
        return response + "Content-Type: application/json\r\nContent-Length: " + length + "\r\n\r\n" + body;
    }

    /** A business result. */
    static String result(String json) {
        return response(200, json.replace('\'', '"'));
    }

    String address() {
        return scheme + "://127.0.0.1:" + listener.getLocalPort();
    }

    List<Request> requests() {
        return requests;
    }

    /** Returns the bodies of the requests. */
    List<String> bodies() {
        List<String> bodies = new ArrayList<>();
        for (Request request : requests) bodies.add(request.body);
        return bodies;
    }

    private void accept() {
        while (true) {
            try {
                Socket socket = listener.accept();
                Thread thread = new Thread(() -> serve(socket), "played-api-connection");
                thread.setDaemon(true);
                thread.start();
            } catch (IOException closed) {
                return;
            }
        }
    }

    private void serve(Socket socket) {
        try (Socket connection = socket) {
            InputStream in = new BufferedInputStream(connection.getInputStream());
            while (true) {
                requests.add(read(in));
                String answer = answers.remove();
                connection.getOutputStream().write(answer.replace(CUT, "").getBytes(StandardCharsets.UTF_8));
                if (answer.endsWith(CUT)) return;
            }
        } catch (IOException ended) {
            return;
        }
    }

    private static Request read(InputStream in) throws IOException {
        Request request = new Request(line(in));
        int length = 0;
        for (String line = line(in); !line.isEmpty(); line = line(in)) {
            String[] parts = line.split(": ", 2);
            request.headers.put(parts[0], parts[1]);
            if (parts[0].equals("Content-Length")) length = Integer.parseInt(parts[1]);
        }
        byte[] body = new byte[length];
        for (int index = 0; index < length; index++) body[index] = (byte) in.read();
        request.body = new String(body, StandardCharsets.UTF_8);
        return request;
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        int unit = in.read();
        while (unit >= 0 && unit != '\n') {
            if (unit != '\r') line.append((char) unit);
            unit = in.read();
        }
        if (unit < 0) throw new IOException("ended");
        return line.toString();
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }
}
