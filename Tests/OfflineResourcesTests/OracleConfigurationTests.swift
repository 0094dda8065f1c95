import Foundation
import Testing

@testable import OfflineResources

@Suite("Oracle's own policy files") struct OracleConfigurationTests {
    private static let xml = """
        <?xml version="1.0" encoding="utf-8"?>
        <mobileBackends>
            <mobileBackend>
                <mbeName>Incidents</mbeName><mbeVersion>1.0</mbeVersion><default>true</default>
                <baseUrl>https://backend.example:443</baseUrl>
                <authorization><basic><anonymousKey>k</anonymousKey></basic></authorization>
                <synchronization>
                    <!-- Sizes are in MB, times in seconds. -->
                    <periodicRefreshPolicy>
                        PERIODIC_REFRESH_POLICY_REFRESH_EXPIRED_ITEM_ON_STARTUP
                    </periodicRefreshPolicy>
                    <periodicRefreshInterval>60</periodicRefreshInterval>
                    <maxStoreSize>20</maxStoreSize>
                    <policies>
                        <policy>
                            <path>/mobile/custom/incidentreport/incidents/**</path>
                            <fetchPolicy>FETCH_FROM_SERVICE_ON_CACHE_MISS_OR_EXPIRY</fetchPolicy>
                            <expirationPolicy>EXPIRE_AFTER</expirationPolicy>
                            <expireAfter>600</expireAfter>
                            <evictionPolicy>EVICT_ON_EXPIRY_AT_STARTUP</evictionPolicy>
                            <updatePolicy>QUEUE_IF_OFFLINE</updatePolicy>
                            <conflictResolutionPolicy>CLIENT_WINS</conflictResolutionPolicy>
                            <noCache>false</noCache>
                        </policy>
                        <policy>
                            <path>/mobile/custom/incidentreport/statistics</path>
                            <noCache>true</noCache>
                        </policy>
                    </policies>
                    <defaultPolicy>
                        <fetchPolicy>FETCH_POLICY_FETCH_WITH_REFRESH</fetchPolicy>
                    </defaultPolicy>
                </synchronization>
            </mobileBackend>
            <mobileBackend><mbeName>Other</mbeName><synchronization/></mobileBackend>
            <mobileBackend><mbeName>None</mbeName></mobileBackend>
        </mobileBackends>
        """

    private static let propertyList = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0"><dict>
            <key>logLevel</key><string>debug</string>
            <key>mobileBackends</key><dict>
                <key>Incidents</key><dict>
                    <key>default</key><true/>
                    <key>baseURL</key><string>https://backend.example:443</string>
                    <key>synchronization</key><dict>
                        <key>periodicRefreshPolicy</key>
                        <string>PERIODIC_REFRESH_POLICY_REFRESH_EXPIRED_ITEM_ON_START_UP</string>
                        <key>periodicRefreshInterval</key><integer>60</integer>
                        <key>maxStoreSize</key><integer>20</integer>
                        <key>policies</key><array>
                            <dict>
                                <key>path</key><string>/mobile/custom/incidentreport/incidents/**</string>
                                <key>fetchPolicy</key><string>FETCH_FROM_SERVICE_ON_CACHE_MISS_OR_EXPIRY</string>
                                <key>expirationPolicy</key><string>EXPIRE_AFTER</string>
                                <key>expireAfter</key><integer>600</integer>
                                <key>evictionPolicy</key><string>EVICT_ON_EXPIRY_AT_STARTUP</string>
                                <key>updatePolicy</key><string>QUEUE_IF_OFFLINE</string>
                                <key>conflictResolutionPolicy</key><string>CLIENT_WINS</string>
                                <key>noCache</key><false/>
                            </dict>
                            <dict>
                                <key>path</key><string>/mobile/custom/incidentreport/statistics</string>
                                <key>noCache</key><true/>
                            </dict>
                        </array>
                        <key>defaultPolicy</key><dict>
                            <key>fetchPolicy</key><string>FETCH_WITH_REFRESH</string>
                        </dict>
                    </dict>
                </dict>
                <key>Other</key><dict><key>synchronization</key><dict/></dict>
                <key>None</key><dict/>
            </dict>
        </dict></plist>
        """

    /// Both files say the same.
    private func check(_ file: PolicyFile) throws {
        #expect(file.maxStoreSize == 20_000_000 && file.periodicRefreshInterval == .seconds(60))
        #expect(file.periodicRefreshPolicy == .refreshExpiredItemOnStartup)
        let incident = file.book.policy(of: "/mobile/custom/incidentreport/incidents/7", kind: .item)
        #expect(incident.fetchPolicy == .fetchFromServiceOnCacheMissOrExpiry)
        #expect(incident.expirationPolicy == .expireAfter && incident.expireAfter == .seconds(600))
        #expect(incident.evictionPolicy == .evictOnExpiryAtStartup && incident.updatePolicy == .queueIfOffline)
        #expect(incident.conflictResolutionPolicy == .clientWins && !incident.noCache)
        let statistics = file.book.policy(of: "/mobile/custom/incidentreport/statistics", kind: .item)
        #expect(statistics.noCache && statistics.fetchPolicy == .fetchWithRefresh)
        #expect(file.book.paths.count == 2)
    }

    @Test("the XML file of an Android app and the property list of an iOS app are read unchanged, by their content")
    func formats() throws {
        try check(PolicyFile(xml: bytes(Self.xml)))
        try check(PolicyFile(propertyList: bytes(Self.propertyList), backend: "Incidents"))
        let binary = try PropertyListSerialization.data(
            fromPropertyList: PropertyListSerialization.propertyList(from: Data(Self.propertyList.utf8), format: nil),
            format: .binary, options: 0)
        try check(PolicyFile(propertyList: [UInt8](binary)))
        let folder = FileManager.default.temporaryDirectory
        for content in [Data(Self.xml.utf8), Data(Self.propertyList.utf8), binary] {
            let file = folder.appending(path: "policies-\(UUID().uuidString)")
            try content.write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            try check(PolicyFile(contentsOf: file))
        }
        // A section alone, and a section without policies.
        let alone = "<synchronization><maxStoreSize>3</maxStoreSize></synchronization>"
        #expect(try PolicyFile(xml: bytes(alone)).maxStoreSize == 3_000_000)
        #expect(try PolicyFile(xml: bytes(Self.xml), backend: "Other").book == PolicyBook())
    }

    @Test("references, sections of characters, comments and attributes of an XML file are read")
    func markup() throws {
        let element = try ConfigurationElement.parse(
            bytes(
                "\u{FEFF}<?xml version=\"1.0\"?>\n<!DOCTYPE a>\n<a x=\"1\"><!-- <b> [1] --> &lt;&#65;&#x42;\n<c/>"
                    + "<![CDATA[<&]]></a>"))
        #expect(element.text == "<AB\n<&" && element.children.map(\.name) == ["c"])
        let bad = [
            "", "a", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>text", "<a>&other;</a>", "<a>&#x110000;</a>",
            "<a>&amp</a>", "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>", "<a", "<>", "<a><![CDATA[</a>",
            String(repeating: "<a>", count: 101) + String(repeating: "</a>", count: 101),
        ]
        for xml in bad { #expect(throws: ResourceError.self, "\(xml)") { try ConfigurationElement.parse(bytes(xml)) } }
    }

    @Test("an unusable file of Oracle's is refused with the place and the remedy")
    func badFiles() {
        let policy = "<policies><policy><path>/a</path><fetchPolicy>CACHE</fetchPolicy></policy></policies>"
        let one = "<mobileBackend><mbeName>A</mbeName></mobileBackend>"
        let bad: [(String, String?, String)] = [
            ("<a><b></a>", nil, "not valid XML at line"), ("<a/>", nil, "has no default backend"),
            (Self.xml, "Missing", "no backend Missing; pass the name of one of its backends: Incidents, Other, None"),
            (Self.xml, "None", "backend None of the policy file has no section synchronization"),
            ("<mobileBackends>\(one)\(one)</mobileBackends>", nil, "has no default backend"),
            ("<synchronization>\(policy)</synchronization>", nil, "policies[0].fetchPolicy must be one of"),
            ("<synchronization><maxStoresize>1</maxStoresize></synchronization>", nil, "maxStoresize is not known"),
        ]
        for (xml, backend, part) in bad {
            #expect {
                try PolicyFile(xml: bytes(xml), backend: backend)
            } throws: { error in
                guard let error = error as? ResourceError else { return false }
                return error.code == .policyFile && error.message.contains(part)
            }
        }
        #expect { try PolicyFile(propertyList: bytes("<plist version=\"1.0\"><dict>")) } throws: {
            ($0 as? ResourceError)?.message.contains("not a valid property list") == true
        }
    }
}
