package org.mobilesync.tests;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The golden bytes of DeviceProtocol.md, which all implementations share. */
final class ProtocolText {
    private static final String PATH = "Shared/Device/DeviceProtocol/DeviceProtocol.md";
    /** The width of the column with bytes in an example. */
    private static final int BYTES_COLUMN = 31;

    private ProtocolText() {}

    private static String text() {
        try {
            return new String(Files.readAllBytes(Paths.get(PATH)), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new UncheckedIOException("run the tests in the project's folder", error);
        }
    }

    /** Returns the frames of the section Examples, in order. */
    static List<byte[]> examples() {
        List<byte[]> examples = new ArrayList<>();
        String[] blocks = text().split("## Examples")[1].split("## Conformance")[0].split("```");
        for (int index = 1; index < blocks.length; index += 2) {
            StringBuilder hex = new StringBuilder();
            for (String line : blocks[index].split("\n")) {
                hex.append(line, 0, Math.min(line.length(), BYTES_COLUMN)).append(' ');
            }
            examples.add(bytes(hex.toString()));
        }
        return examples;
    }

    /** Returns the bytes that the signature of the signed example covers. */
    static byte[] signedParts() {
        StringBuilder hex = new StringBuilder();
        String[] rows = text().split("\\| Parts \\| Bytes \\|")[1].split("\n\n")[0].split("\n");
        for (String row : Arrays.copyOfRange(rows, 2, rows.length)) {
            hex.append(row.split("\\|")[2].replaceAll("[^0-9a-f]", ""));
        }
        return bytes(hex.toString());
    }

    /** Returns the bytes of hexadecimal digits; blanks are ignored. */
    static byte[] bytes(String hex) {
        String digits = hex.replaceAll("\\s", "");
        byte[] bytes = new byte[digits.length() / 2];
        for (int index = 0; index < bytes.length; index++) {
            bytes[index] = (byte) Integer.parseInt(digits.substring(2 * index, 2 * index + 2), 16);
        }
        return bytes;
    }
}
