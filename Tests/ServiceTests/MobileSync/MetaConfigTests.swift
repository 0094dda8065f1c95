import Foundation
import MobileSync
import Testing

@Suite("meta.config of an app") struct MetaConfigTests {
    /// A file of the vendor's tools, with members that other components of an app read.
    private static let usual = """
        {"syncserver": "push.example.com", "syncport": "7443", "appId": "ONEX1", "workspaceId": "prod",
         "appKey": "ONEX1_IOS-prod", "rpcGW": "https://gateway.example.com", "more": {"a": [1, null]}}
        """

    @Test("K7: the guide's members are read, others are ignored, and make a client's configuration")
    func usual() throws {
        let meta = try MetaConfig(json: Data(Self.usual.utf8))
        #expect(meta.appKey == "ONEX1_IOS-prod")
        let configuration = meta.clientConfiguration(deviceID: "d", storePath: "/tmp/store", trust: .system)
        #expect(configuration.host == "push.example.com")
        #expect(configuration.port == 7_443)
        #expect(configuration.instanceID == "prod_ONEX1")
        #expect(configuration.deviceID == "d")
    }

    @Test("K7: a file and a value have the same meaning; the port may be a number") func fileAndValue() throws {
        let file = URL(filePath: NSTemporaryDirectory()).appending(path: "\(UUID().uuidString).config")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(#"{"syncserver":"h","syncport":443,"appId":"a","workspaceId":"w"}"#.utf8).write(to: file)
        #expect(try MetaConfig(contentsOf: file) == MetaConfig(host: "h", port: 443, workspaceID: "w", appID: "a"))
    }

    @Test("K7: mss-ca.pem beside the file is the authority, unless the app names another")
    func authority() throws {
        let folder = URL(filePath: NSTemporaryDirectory()).appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (file, authority) = (folder.appending(path: "meta.config"), folder.appending(path: "mss-ca.pem"))
        try Data(#"{"syncserver":"h","syncport":443,"appId":"a","workspaceId":"w"}"#.utf8).write(to: file)
        func trust(_ given: SyncTrust? = nil) throws -> SyncTrust {
            try MetaConfig(contentsOf: file).clientConfiguration(deviceID: "d", storePath: "/s", trust: given).trust
        }
        #expect(try trust() == .system)
        try Data("a certificate".utf8).write(to: authority)
        #expect(try trust() == .certificateAuthority(file: authority.path))
        #expect(try trust(.certificateAuthority(file: "/other.pem")) == .certificateAuthority(file: "/other.pem"))
        #expect(try trust(.system) == .system)
    }

    @Test("K7: the tool's output names the instance as a whole, also one without parts")
    func wholeInstance() throws {
        let file = #"{"instanceId":"app","workspaceId":"","appId":"app","syncserver":"h","syncport":"1"}"#
        #expect(try MetaConfig(json: Data(file.utf8)).instanceID == "app")
    }

    @Test(
        "K7: an error names the file, the member and its form",
        arguments: [
            (#"{"syncport":1,"appId":"a","workspaceId":"w"}"#, "syncserver is missing"),
            (#"{"syncserver":"https://h","syncport":1,"appId":"a","workspaceId":"w"}"#, "without https://"),
            (#"{"syncserver":"h","appId":"a","workspaceId":"w"}"#, "syncport is missing"),
            (#"{"syncserver":"h","syncport":"x","appId":"a","workspaceId":"w"}"#, "a number from 1 to 65535"),
            (#"{"syncserver":"h","syncport":65536,"appId":"a","workspaceId":"w"}"#, "a number from 1 to 65535"),
            (#"{"syncserver":"h","syncport":true,"appId":"a","workspaceId":"w"}"#, "a number from 1 to 65535"),
            (#"{"syncserver":"h","syncport":1,"workspaceId":"w"}"#, "appId is missing"),
            (#"{"syncserver":"h","syncport":1,"appId":7,"workspaceId":"w"}"#, "appId is not usable; expected a text"),
            (#"{"syncserver":"h","syncport":1,"appId":"a","workspaceId":""}"#, "workspaceId is not usable"),
            (
                #"{"syncserver":"h","syncport":1,"appId":"a","workspaceId":"w","instanceId":"x_a"}"#,
                "instanceId is not usable; expected <workspaceId>_<appId>, here w_a"
            ),
            ("[]", "is not a JSON object"),
            ("", "is not a JSON object"),
        ])
    func errors(file: String, words: String) {
        let error = #expect(throws: SyncError.self) {
            try MetaConfig(json: Data(file.utf8), source: "/app/meta.config")
        }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.hasPrefix("/app/meta.config") == true)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test("K7: a missing file is named") func missingFile() {
        let error = #expect(throws: SyncError.self) { try MetaConfig(contentsOf: URL(filePath: "/no/meta.config")) }
        #expect(error?.message.contains("/no/meta.config") == true)
    }
}
