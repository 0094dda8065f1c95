import Credentials
import Crypto
import Testing

@Suite("Request signatures")
struct RequestSignatureTests {
    /// A request and its signature with the secret 00 01 … 1f. Python's hashlib and hmac made the signatures from the
    /// text of the API's description, and `openssl dgst -sha256 -mac HMAC` also the first one.
    struct Vector: CustomTestStringConvertible, Sendable {
        var method = "POST"
        var target: String
        var body: [UInt8] = []
        var timestamp = "1700000000000"
        var nonce = "000102030405060708090a0b0c0d0e0f"
        var keyID = "k0011223344556677"
        var signature = ""

        var testDescription: String { target }

        var signed: RequestSignature {
            RequestSignature(
                method: method, target: target, body: body, timestamp: timestamp, nonce: nonce, keyID: keyID)
        }
    }

    static let secret = SymmetricKey(data: Array(UInt8(0)..<32))
    static let first = Vector(
        target: "/webapi/sync/single?instanceId=demo_app",
        body: Array(#"{"bizType":"UCHAT","linkToken":"u1","thirdMsgId":"m1","payload":"hello"}"#.utf8),
        signature: "f0dc6d4d2a8b6423008b1d187306bffcef4899e4d35bd22ee133c6209228abc0")
    static let vectors = [
        first,
        Vector(
            target: "/webapi/sync/single?instanceId=demo_app&dryRun=true", body: Array("{}".utf8),
            signature: "6dbd503900adb0c82c10af8dfbbad759a473fef3fd3ecf2c454d5b9295155950"),
        Vector(
            target: "/webapi/sync/single?dryRun=true&instanceId=demo_app", body: Array("{}".utf8),
            signature: "6dbd503900adb0c82c10af8dfbbad759a473fef3fd3ecf2c454d5b9295155950"),
        Vector(
            method: "GET",
            target: "/webapi/sync/trace?thirdMsgId=%C3%A9&oplogId=&linkToken=u%2F1&bizType=B&instanceId=demo%5Fapp",
            signature: "6b3129d9c041ca49480b62e36938f052d2dfcd61d60b83e15b69d509d5624ed4"),
        Vector(
            method: "GET", target: "/webapi/sync/trace",
            nonce: "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f",
            signature: "d3a9cb59401c5fdff5cde79f65d07e9070b424ad73f61076c35689d5388e1920"),
        Vector(
            method: "GET", target: "/webapi/sync/trace?",
            nonce: "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f",
            signature: "d3a9cb59401c5fdff5cde79f65d07e9070b424ad73f61076c35689d5388e1920"),
        Vector(
            method: "GET", target: "/webapi/sync/trace?b&a=2&&a=1&a", nonce: "000102030405060708090A0B0C0D0E0F",
            signature: "8bcf53f1ff41c1fbf41b074491d86e8eb3e8db4b1a5cb91c95f99eb5e3699fdc"),
        Vector(
            target: "/webapi/sync/batch?instanceId=demo_app",
            body: (0..<64).flatMap { _ in Array(UInt8.min ... .max) }, timestamp: "1", keyID: "k",
            signature: "5f9136f87230ef1cc78199d16b62d3fafd8a434104b4c6a9cf3d8aa857472d86"),
    ]

    @Test("SEC6: the published vectors", arguments: vectors)
    func published(_ vector: Vector) throws {
        let code = try #require(HexText.bytes(of: vector.signature))
        #expect(HexText.of(vector.signed.code(with: Self.secret)) == vector.signature)
        #expect(vector.signed.isValid(code, with: Self.secret))
    }

    @Test("SEC6: a change of any bit of the request, secret or signature makes it invalid")
    func flips() throws {
        let first = Self.first
        let code = try #require(HexText.bytes(of: first.signature))
        let texts: [WritableKeyPath<Vector, String>] = [\.method, \.target, \.timestamp, \.nonce, \.keyID]
        for part in texts {
            for place in first[keyPath: part].utf8.indices {
                var changed = first
                var bytes = Array(first[keyPath: part].utf8)
                bytes[first[keyPath: part].utf8.distance(from: first[keyPath: part].startIndex, to: place)] ^= 1
                changed[keyPath: part] = String(decoding: bytes, as: UTF8.self)
                #expect(!changed.signed.isValid(code, with: Self.secret), "\(changed)")
            }
        }
        for place in first.body.indices {
            var changed = first
            changed.body[place] ^= 0x80
            #expect(!changed.signed.isValid(code, with: Self.secret))
        }
        for place in 0..<(32 * 8) {
            var (changed, secret) = (code, Array(UInt8(0)..<32))
            changed[place / 8] ^= 1 << (place % 8)
            secret[place / 8] ^= 1 << (place % 8)
            #expect(!first.signed.isValid(changed, with: Self.secret))
            #expect(!first.signed.isValid(code, with: SymmetricKey(data: secret)))
        }
        for wrong in [[], Array(code.dropLast()), code + [0]] {
            #expect(!first.signed.isValid(wrong, with: Self.secret))
        }
    }

    @Test("SEC6: parts that move to another place change the signed text")
    func boundaries() {
        var (one, other) = (Self.first, Self.first)
        (one.timestamp, one.nonce) = ("12", "34")
        (other.timestamp, other.nonce) = ("1", "234")
        #expect(one.signed.text != other.signed.text)
        (one.target, other.target) = ("/a?b=1&c=2", "/a?b=1%26c=2")
        (one.timestamp, one.nonce) = (other.timestamp, other.nonce)
        #expect(one.signed.text != other.signed.text)
        // A combining accent forms one character with the ampersand, which still separates the query.
        one.target = "/a?c&\u{301}b"
        #expect(one.signed.text.hasPrefix("v1\nPOST\n/a?c&\u{301}b\n"))
        one.target = "/a?d&\u{301}b&c"
        #expect(one.signed.text.utf8.starts(with: "v1\nPOST\n/a?c&d&\u{301}b\n".utf8))
    }
}
