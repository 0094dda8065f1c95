package org.mobilesync.internal.network;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLSocket;
import org.mobilesync.SyncTransport;
import org.mobilesync.internal.connection.GatewayAddress;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.FrameDecoder;
import org.mobilesync.internal.wire.FrameException;

/** One transport connection to a gateway: a thread that connects and reads, and one that writes. */
public final class GatewayLink {
    /** Frames that were read and not handled yet; then the reader waits, and TCP slows the gateway down. */
    private static final int MOST_UNHANDLED = 8;
    /** Bytes that wait for a gateway that does not read; then the connection ends. */
    private static final long MOST_UNSENT_BYTES = 4_000_000;
    private static final int BUFFER_BYTES = 16_384;
    private static final byte[] END = new byte[0];

    /** Receives the events of a link, on the link's threads. */
    public interface Listener {
        /** The transport is connected; the first frame can be sent. */
        void opened(GatewayLink link);

        /** A frame has arrived. Call {@link GatewayLink#handled} after it was handled. The body can be null. */
        void received(GatewayLink link, Body body);

        /** The link has ended. It is the last event, and does not follow a {@link GatewayLink#close}. */
        void ended(GatewayLink link, String reason);
    }

    private final TlsConnector connector;
    private final GatewayAddress address;
    private final Listener listener;
    private final Socket socket = new Socket();
    private final BlockingQueue<byte[]> outgoing = new LinkedBlockingQueue<>();
    private final AtomicLong unsentBytes = new AtomicLong();
    private final Semaphore unhandled = new Semaphore(MOST_UNHANDLED);
    private volatile boolean isClosed;
    private volatile boolean hasEnded;
    private volatile Thread writer;

    /** Creates a link. {@link #start} connects it. */
    public GatewayLink(TlsConnector connector, GatewayAddress address, Listener listener) {
        this.connector = connector;
        this.address = address;
        this.listener = listener;
    }

    /** Begins to connect. */
    public void start() {
        daemon("mobile-sync-reader", this::run).start();
    }

    private static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    private void run() {
        String reason;
        try {
            SSLSocket tls = connector.connect(socket, address);
            InputStream in = new BufferedInputStream(tls.getInputStream(), BUFFER_BYTES);
            OutputStream out = tls.getOutputStream();
            WebSocket webSocket = null;
            if (connector.transport() == SyncTransport.WEB_SOCKET) {
                webSocket = new WebSocket(in, out);
                webSocket.open(address);
                in = webSocket.input();
                out = webSocket.output();
            }
            // From here on the state machine limits silence.
            socket.setSoTimeout(0);
            WebSocket carrier = webSocket;
            OutputStream frames = out;
            writer = daemon("mobile-sync-writer", () -> write(frames, carrier));
            writer.start();
            listener.opened(this);
            FrameDecoder decoder = new FrameDecoder(in);
            while (true) {
                unhandled.acquire();
                // The events of a closed link have no receiver, so nothing would let this thread go on.
                if (isClosed) return;
                listener.received(this, decoder.next());
            }
        } catch (IOException error) {
            reason = TlsConnector.describe(error);
        } catch (FrameException error) {
            reason = "the gateway sent bytes that are no frame: " + error.getMessage();
        } catch (InterruptedException error) {
            reason = "the reader was interrupted";
        } catch (RuntimeException | Error error) {
            reason = "the reader failed: " + error;
        }
        end(reason);
    }

    private void write(OutputStream out, WebSocket webSocket) {
        try {
            while (true) {
                byte[] frame = outgoing.take();
                if (frame == END) break;
                out.write(frame);
                if (outgoing.isEmpty()) out.flush();
                unsentBytes.addAndGet(-frame.length);
            }
            if (webSocket != null) webSocket.sendClose(1000);
        } catch (IOException error) {
            end(TlsConnector.describe(error));
        } catch (InterruptedException error) {
            end("the writer was interrupted");
        } catch (RuntimeException | Error error) {
            end("the writer failed: " + error);
        } finally {
            closeSocket();
        }
    }

    /** Reports that a received frame was handled. */
    public void handled() {
        unhandled.release();
    }

    /** Queues a frame. A gateway that does not read ends the connection when too much waits for it. */
    public void send(byte[] frame) {
        if (isClosed) return;
        if (unsentBytes.addAndGet(frame.length) > MOST_UNSENT_BYTES) {
            end("the gateway does not read");
            return;
        }
        outgoing.add(frame);
    }

    /** Closes the connection after the queued frames are written. No event follows. */
    public void close() {
        isClosed = true;
        outgoing.add(END);
        unhandled.release(MOST_UNHANDLED);
    }

    /** Waits until a closed link has written its frames, at most this time, and closes it in any case. */
    public void awaitClosed(long ms) throws InterruptedException {
        Thread present = writer;
        if (present != null) present.join(ms);
        closeSocket();
    }

    /** Closes the connection at once. No event follows. */
    public void abort() {
        isClosed = true;
        outgoing.add(END);
        unhandled.release(MOST_UNHANDLED);
        closeSocket();
    }

    private void end(String reason) {
        synchronized (this) {
            if (hasEnded) return;
            hasEnded = true;
        }
        outgoing.add(END);
        closeSocket();
        if (!isClosed) listener.ended(this, reason);
    }

    private void closeSocket() {
        try {
            // The socket below TLS, so that no write of TLS can block the caller.
            socket.close();
        } catch (IOException error) {
            // The connection is over in any case.
        }
    }
}
