import SyncModel
import Testing

@testable import ControlTool
@testable import MobileSync

@Suite("OplogLine: the output of mssctl listen") struct OplogLineTests {
    private func oplog(
        _ payload: String = "hi", conversation: String? = nil, attempt: Int = 1, isReplay: Bool = false,
        recalls: Int64? = nil
    ) -> SyncOplog {
        SyncOplog(
            bizType: "B", oplogID: 7, payload: Array(payload.utf8), isBinary: false, thirdMessageID: "m",
            conversation: conversation, createdAt: 0, userID: nil, recalls: recalls, isReplay: isReplay, channelRow: 1,
            state: ResendLadder.State(repeats: attempt - 1, handOuts: attempt))
    }

    @Test("the line of an ordinary oplog has no words or members for defaults") func plain() {
        #expect(OplogLine(isJSON: false).text(of: oplog("a\nb")) == "1970-01-01T00:00:00Z B 7 a\\nb\n")
        #expect(
            OplogLine(isJSON: true).text(of: oplog())
                == #"{"bizType":"B","oplogId":7,"payload":"hi","thirdMsgId":"m","createdAt":0}"# + "\n")
        #expect(
            OplogLine(isJSON: true).text(of: oplog(conversation: "a \"b\"")).contains(#","conversation":"a \"b\"","#))
    }

    @Test("repeats, replays and recalls are named") func unusual() {
        let text = OplogLine(isJSON: false)
        #expect(text.text(of: oplog(attempt: 2)) == "1970-01-01T00:00:00Z B 7 (attempt 2) hi\n")
        #expect(
            text.text(of: oplog(attempt: 3, isReplay: true)) == "1970-01-01T00:00:00Z B 7 (replay) (attempt 3) hi\n")
        #expect(text.text(of: oplog("", recalls: 5)) == "1970-01-01T00:00:00Z B 7 (recalled 5)\n")
        let json = OplogLine(isJSON: true)
        #expect(json.text(of: oplog(attempt: 2)).hasSuffix(#""createdAt":0,"attempt":2}"# + "\n"))
        #expect(json.text(of: oplog(isReplay: true)).hasSuffix(#""createdAt":0,"replay":true}"# + "\n"))
        #expect(
            json.text(of: oplog("", recalls: 5)).hasSuffix(
                #""payload":"","thirdMsgId":"m","createdAt":0,"recalls":5}"# + "\n"))
    }
}
