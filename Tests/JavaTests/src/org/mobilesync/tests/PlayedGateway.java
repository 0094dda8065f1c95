package org.mobilesync.tests;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.mobilesync.SyncIdentity;
import org.mobilesync.internal.wire.BindResult;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.Connected;
import org.mobilesync.internal.wire.FrameDecoder;
import org.mobilesync.internal.wire.FrameException;

/** A gateway on a free port of the loopback interface that sends only what a test tells it. */
public final class PlayedGateway implements AutoCloseable {
    private static final char[] PASSWORD = "password".toCharArray();
    private static final long LIMIT_SECONDS = 15;

    private final SSLServerSocket listener;
    private final Keys keys;
    private final BlockingQueue<Connection> accepted = new LinkedBlockingQueue<>();
    private final List<Connection> all = new CopyOnWriteArrayList<>();

    /** A certificate and its key. All tests of a run share two, because keytool is slow. */
    public static final class Keys {
        /** The certificate that the tests' clients trust. */
        public static final Keys RIGHT = make("right");
        /** Another one. */
        public static final Keys STRANGER = make("stranger");

        private final Path authority;
        private final Path key;
        private final KeyStore store;

        private Keys(Path authority, Path key, KeyStore store) {
            this.authority = authority;
            this.key = key;
            this.store = store;
        }

        /** Returns the PEM file with the certificate. */
        public Path authority() {
            return authority;
        }

        /** Returns the PEM file with the private key. */
        Path key() {
            return key;
        }

        /** Returns the TLS context of a server with this certificate. */
        public SSLContext context() {
            return context(null);
        }

        private SSLContext context(TrustManager[] clients) {
            try {
                KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
                factory.init(store, PASSWORD);
                SSLContext context = SSLContext.getInstance("TLS");
                context.init(factory.getKeyManagers(), clients, null);
                return context;
            } catch (GeneralSecurityException error) {
                throw new IllegalStateException(error);
            }
        }

        /** Returns the TLS context of a server that accepts the other certificate from its clients. */
        private SSLContext contextTrusting(Keys client) throws Exception {
            KeyStore authorities = KeyStore.getInstance(KeyStore.getDefaultType());
            authorities.load(null, null);
            authorities.setCertificateEntry("client", client.store.getCertificate("gateway"));
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(authorities);
            return context(trust.getTrustManagers());
        }

        /** Returns the certificate and its key as an identity of a client. */
        SyncIdentity identity() {
            return SyncIdentity.files(authority.toString(), key.toString());
        }

        /** Makes a certificate for the loopback interface that signs itself; its subject is the name. */
        private static Keys make(String name) {
            try {
                Path folder = Files.createTempDirectory("keys");
                Path keys = folder.resolve("keys.p12");
                keytool("-genkeypair", "-alias", "gateway", "-keyalg", "EC", "-dname", "CN=" + name, "-ext",
                    "san=dns:localhost,ip:127.0.0.1", "-storetype", "PKCS12", "-keystore", keys.toString(),
                    "-storepass", "password", "-validity", "2");
                KeyStore store = KeyStore.getInstance("PKCS12");
                try (InputStream in = Files.newInputStream(keys)) {
                    store.load(in, PASSWORD);
                }
                Files.delete(keys);
                folder.toFile().deleteOnExit();
                return new Keys(
                    pem(folder.resolve("authority.pem"), "CERTIFICATE", store.getCertificate("gateway").getEncoded()),
                    pem(folder.resolve("key.pem"), "PRIVATE KEY", store.getKey("gateway", PASSWORD).getEncoded()),
                    store);
            } catch (Exception error) {
                throw new IllegalStateException("no certificate for the tests", error);
            }
        }

        private static Path pem(Path file, String label, byte[] content) throws IOException {
            String text = "-----BEGIN " + label + "-----\n" + Base64.getMimeEncoder().encodeToString(content)
                + "\n-----END " + label + "-----\n";
            Files.write(file, text.getBytes(StandardCharsets.US_ASCII));
            file.toFile().deleteOnExit();
            return file;
        }
    }

    PlayedGateway(Keys keys) throws IOException {
        this(keys, keys.context());
    }

    private PlayedGateway(Keys keys, SSLContext context) throws IOException {
        this.keys = keys;
        listener = (SSLServerSocket) context.getServerSocketFactory()
            .createServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        Thread thread = new Thread(this::accept, "played-gateway");
        thread.setDaemon(true);
        thread.start();
    }

    /** A gateway that requires this client certificate. */
    static PlayedGateway requiring(Keys client, Keys keys) throws Exception {
        PlayedGateway gateway = new PlayedGateway(keys, keys.contextTrusting(client));
        gateway.listener.setNeedClientAuth(true);
        return gateway;
    }

    private static void keytool(String... arguments) throws Exception {
        String[] command = new String[arguments.length + 1];
        command[0] = System.getProperty("java.home") + "/bin/keytool";
        System.arraycopy(arguments, 0, command, 1, arguments.length);
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        byte[] output = new byte[10_000];
        int count = process.getInputStream().read(output);
        if (process.waitFor() != 0) throw new IOException(new String(output, 0, Math.max(0, count)));
    }

    private void accept() {
        while (true) {
            try {
                Connection connection = new Connection((SSLSocket) listener.accept());
                all.add(connection);
                accepted.add(connection);
                Thread thread = new Thread(connection::read, "played-gateway-connection");
                thread.setDaemon(true);
                thread.start();
            } catch (IOException closed) {
                return;
            }
        }
    }

    int port() {
        return listener.getLocalPort();
    }

    String authority() {
        return keys.authority.toString();
    }

    /** Returns the next connection, after its Connect has arrived. */
    Connection next() throws InterruptedException {
        Connection connection = accepted.poll(LIMIT_SECONDS, TimeUnit.SECONDS);
        if (connection == null) throw new AssertionError("no connection arrived");
        connection.connect = connection.find(Connect.class, frame -> true);
        return connection;
    }

    /** Returns the next connection, and accepts it and its bind. */
    Connection open() throws InterruptedException {
        Connection connection = next();
        Connected connected = new Connected();
        connected.heartbeatSeconds = 60;
        connected.serverTimeMs = 1_700_000_000_000L;
        connection.send(connected);
        if (connection.connect.bind != null) connection.acceptBind(1);
        return connection;
    }

    /** Returns whether no connection arrives within a time. */
    boolean isLeftAlone(long ms) throws InterruptedException {
        return accepted.poll(ms, TimeUnit.MILLISECONDS) == null;
    }

    @Override
    public void close() throws IOException {
        listener.close();
        for (Connection connection : all) connection.cut();
    }

    /** One connection of a device. */
    static final class Connection {
        private final SSLSocket socket;
        private final List<Body> frames = new CopyOnWriteArrayList<>();
        private volatile boolean hasEnded;
        private Connect connect;

        private Connection(SSLSocket socket) {
            this.socket = socket;
        }

        private void read() {
            try {
                FrameDecoder decoder = new FrameDecoder(new BufferedInputStream(socket.getInputStream()));
                while (true) {
                    Body frame = decoder.next();
                    synchronized (this) {
                        frames.add(frame);
                        notifyAll();
                    }
                }
            } catch (IOException | FrameException ended) {
                synchronized (this) {
                    hasEnded = true;
                    notifyAll();
                }
            }
        }

        Connect connect() {
            return connect;
        }

        void send(Body frame) {
            send(Collections.singletonList(frame));
        }

        /** Sends frames in one TLS record. */
        void send(List<? extends Body> frames) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            for (Body frame : frames) bytes.write(frame.frame(), 0, frame.frame().length);
            try {
                socket.getOutputStream().write(bytes.toByteArray());
                socket.getOutputStream().flush();
            } catch (IOException error) {
                throw new AssertionError("the device has ended the connection", error);
            }
        }

        void acceptBind(long number) {
            BindResult result = new BindResult();
            result.bindNumber = number;
            result.accepted = true;
            send(result);
        }

        void cut() {
            try {
                socket.close();
            } catch (IOException error) {
                throw new AssertionError(error);
            }
        }

        /** Waits for a frame, also one that has arrived before. */
        <T extends Body> T find(Class<T> type, Predicate<T> isWanted) throws InterruptedException {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
            synchronized (this) {
                while (true) {
                    for (Body frame : frames) {
                        if (type.isInstance(frame) && isWanted.test(type.cast(frame))) return type.cast(frame);
                    }
                    long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
                    if (hasEnded || left <= 0) {
                        throw new AssertionError("no such " + type.getSimpleName() + "; received " + names());
                    }
                    wait(left);
                }
            }
        }

        /** Returns whether a frame of a type has arrived. */
        boolean has(Class<? extends Body> type) {
            return frames.stream().anyMatch(type::isInstance);
        }

        private String names() {
            StringBuilder names = new StringBuilder();
            for (Body frame : frames) names.append(frame == null ? "?" : frame.getClass().getSimpleName()).append(' ');
            return names.toString();
        }

        void awaitEnd() throws InterruptedException {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
            synchronized (this) {
                while (!hasEnded) {
                    long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
                    if (left <= 0) throw new AssertionError("the device did not end the connection");
                    wait(left);
                }
            }
        }
    }
}
