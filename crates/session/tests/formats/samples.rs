//! Messages from the public documentation of each API, with commonly used features.

use bough_session::Format;

/// A sample, and whether it is written unchanged after it went through the canonical message: all but those in a short
/// form.
pub(crate) struct Sample {
    pub(crate) format: Format,
    pub(crate) json: &'static str,
    pub(crate) is_usual: bool,
}

const fn usual(format: Format, json: &'static str) -> Sample {
    Sample { format, json, is_usual: true }
}

const fn short(format: Format, json: &'static str) -> Sample {
    Sample { format, json, is_usual: false }
}

pub(crate) const SAMPLES: &[Sample] = &[
    // The canonical message.
    usual(
        Format::Bough,
        r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},{"type":"image","mime":"image/png","data":"iVBORw0KGgo=","detail":"low"}],"timestamp":1717800000000,"x":123456789012345678901234567890}"#,
    ),
    usual(
        Format::Bough,
        r#"{"role":"assistant","content":[{"type":"thinking","text":"hm","signature":"c2ln"},{"type":"text","text":"It is "},{"type":"function_call","id":"c1","function_id":"weather::get","arguments":{"city":"Oslo","n":9007199254740993000001}}],"stop_reason":"function_call","native_stop_reason":"tool_use","usage":{"input":10,"output":20,"cache_read":5,"cache_write":2,"reasoning":3,"cost_usd":0.25,"tier":"x"},"model":"m","provider":"p","timestamp":2}"#,
    ),
    usual(
        Format::Bough,
        r#"{"role":"function_result","function_call_id":"c1","function_id":"weather::get","content":[{"type":"text","text":"12 C"}],"details":{"t":12.50},"is_error":false,"timestamp":3}"#,
    ),
    usual(
        Format::Bough,
        r#"{"role":"custom","custom_type":"notice","content":[{"type":"text","text":"n"}],"display":"inline","details":[1],"timestamp":4}"#,
    ),
    short(Format::Bough, r#"{"role":"user","content":"hi"}"#),
    usual(
        Format::Bough,
        r#"{"role":"system","content":[{"type":"text","text":"Be brief."}],"timestamp":5}"#,
    ),
    short(Format::Bough, r#"{"content":[],"role":"assistant"}"#),
    // Anthropic Messages.
    short(Format::Anthropic, r#"{"role":"user","content":"Hello, Claude"}"#),
    usual(
        Format::Anthropic,
        r#"{"role":"user","content":[{"type":"text","text":"What is this?","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/4AAQ"}},{"type":"image","source":{"type":"url","url":"https://example.org/a.png"},"cache_control":{"type":"ephemeral"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"report.pdf","citations":{"enabled":true}}]}"#,
    ),
    usual(
        Format::Anthropic,
        r#"{"id":"msg_01","type":"message","role":"assistant","model":"claude-opus-4","content":[{"type":"thinking","thinking":"Let me see.","signature":"EqQBCgIYAhIM"},{"type":"redacted_thinking","data":"EmwKAhgB"},{"type":"text","text":"The grass is green.","citations":[{"type":"char_location","cited_text":"The grass is green.","document_index":0,"document_title":"Facts","start_char_index":0,"end_char_index":20}]},{"type":"tool_use","id":"toolu_01","name":"get_weather","input":{"location":"San Francisco, CA","big":123456789012345678901234567890}},{"type":"tool_use","id":"toolu_02","name":"get_time","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":2095,"cache_creation_input_tokens":2051,"cache_read_input_tokens":2048,"cache_creation":{"ephemeral_5m_input_tokens":2051,"ephemeral_1h_input_tokens":0},"output_tokens":503,"service_tier":"standard","server_tool_use":{"web_search_requests":0}}}"#,
    ),
    usual(
        Format::Anthropic,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":[{"type":"text","text":"15 degrees"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}],"cache_control":{"type":"ephemeral"}}]}"#,
    ),
    short(
        Format::Anthropic,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"15 degrees"},{"type":"tool_result","tool_use_id":"toolu_02","content":"no clock","is_error":true},{"type":"text","text":"And tomorrow?"}]}"#,
    ),
    usual(
        Format::Anthropic,
        r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_01","content":[{"type":"web_search_result","url":"https://example.org","title":"E","encrypted_content":"Eo8","page_age":null}]},{"type":"text","text":"Found."}]}"#,
    ),
    usual(
        Format::Anthropic,
        r#"{"id":"msg_02","type":"message","role":"assistant","model":"claude-opus-4","content":[],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":0}}"#,
    ),
    usual(
        Format::Anthropic,
        r#"{"role":"system","content":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]}"#,
    ),
    // OpenAI Chat Completions.
    short(Format::OpenaiChat, r#"{"role":"developer","content":"You are a helpful assistant."}"#),
    short(Format::OpenaiChat, r#"{"role":"system","content":"Be brief.","name":"sys"}"#),
    usual(
        Format::OpenaiChat,
        r#"{"role":"user","content":[{"type":"text","text":"What is in this?"},{"type":"image_url","image_url":{"url":"https://example.org/boardwalk.jpg","detail":"high"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}],"name":"ann"}"#,
    ),
    usual(
        Format::OpenaiChat,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Paris\", \"n\": 12345678901234567890123}"}},{"id":"call_2","type":"function","function":{"name":"get_time","arguments":"{\"zone\":"}}],"refusal":null,"annotations":[]}"#,
    ),
    usual(
        Format::OpenaiChat,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_3","type":"custom","custom":{"name":"code_exec","input":"print(1)"}}]}"#,
    ),
    // The calls of before there were tools.
    usual(
        Format::OpenaiChat,
        r#"{"role":"assistant","content":null,"function_call":{"name":"get_weather","arguments":"{\"city\": \"Paris\"}"}}"#,
    ),
    usual(
        Format::OpenaiChat,
        r#"{"role":"function","name":"get_weather","content":[{"type":"text","text":"15"}]}"#,
    ),
    short(Format::OpenaiChat, r#"{"role":"tool","tool_call_id":"call_1","content":"15 degrees"}"#),
    usual(
        Format::OpenaiChat,
        r#"{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"A boardwalk.","refusal":null,"annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":1,"url":"https://example.org","title":"t"}}]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1117,"completion_tokens":46,"total_tokens":1163,"prompt_tokens_details":{"cached_tokens":1024,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":10,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_44709d6fcb"}"#,
    ),
    usual(
        Format::OpenaiChat,
        r#"{"id":"chatcmpl-2","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I cannot help with that."},"finish_reason":"content_filter"},{"index":1,"message":{"role":"assistant","content":"other"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
    ),
    usual(
        Format::OpenaiChat,
        r#"{"role":"assistant","content":"spoken","audio":{"id":"audio_1","data":"UklGRg==","expires_at":1,"transcript":"spoken"}}"#,
    ),
    usual(
        Format::OpenaiChat,
        r#"{"role":"assistant","content":null,"audio":{"id":"audio_2","data":"UklGRg==","expires_at":1,"transcript":"said"},"refusal":null}"#,
    ),
    // OpenAI Responses.
    short(Format::OpenaiResponses, r#"{"role":"user","content":"Tell me a story."}"#),
    usual(
        Format::OpenaiResponses,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","image_url":"https://example.org/a.png","detail":"auto"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="},{"type":"input_image","file_id":"file-1","detail":"low"},{"type":"input_file","file_id":"file-6F2ksmvXxt4VdoqmHRw6kL"}],"id":"msg_1","status":"completed"}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"id":"resp_67c","object":"response","created_at":1741476777,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":"gpt-5","output":[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"First,"},{"type":"summary_text","text":"then."}],"encrypted_content":"gAAAAAB"},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[{"type":"url_citation","start_index":0,"end_index":3,"url":"https://example.org","title":"E"}],"logprobs":[],"text":"The image"},{"type":"output_text","annotations":[],"text":" shows grass."}]},{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"More."}]},{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"get_weather","arguments":"{\"location\":\"Paris\"}"},{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"get_time","arguments":"{}"},{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":"high","summary":"auto"},"store":false,"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":{"input_tokens":328,"input_tokens_details":{"cached_tokens":100},"output_tokens":52,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":380},"user":null,"metadata":{}}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"type":"function_call_output","call_id":"call_1","output":"15 degrees"}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"a picture"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}],"id":"fco_1","status":"completed"}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"type":"reasoning","id":"rs_2","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"gAAB","status":"completed"}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}],"id":"msg_3","status":"completed"}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"type":"function_call","call_id":"call_9","name":"f","arguments":"{ }","id":"fc_9"}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"type":"custom_tool_call","call_id":"call_8","name":"sh","input":"ls -la","id":"ctc_1"}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"id":"resp_6","object":"response","status":"completed","model":"gpt-5","output":[{"type":"image_generation_call","id":"ig_1","status":"completed","background":"opaque","output_format":"webp","revised_prompt":"A cat.","result":"UklGRg=="},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"A cat."}]}]}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"id":"resp_2","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"gpt-5","output":[],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":6}}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"id":"resp_3","object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"model":"gpt-5","output":[]}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"id":"resp_4","object":"response","status":"failed","error":{"code":"server_error","message":"The model failed."},"incomplete_details":null,"model":"gpt-5","output":[]}"#,
    ),
    usual(
        Format::OpenaiResponses,
        r#"{"id":"resp_5","object":"response","status":"in_progress","model":"gpt-5","output":[]}"#,
    ),
    // Gemini.
    usual(
        Format::Gemini,
        r#"{"role":"user","parts":[{"text":"What is this?"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},{"fileData":{"mimeType":"image/jpeg","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc"}},{"inlineData":{"mimeType":"audio/mp3","data":"SUQz"}},{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.org/a.pdf"}}]}"#,
    ),
    usual(
        Format::Gemini,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Thinking about it.","thought":true},{"text":"I will look.","thoughtSignature":"CpIB"},{"functionCall":{"name":"get_weather","args":{"location":"Paris"}},"thoughtSignature":"CqcB"},{"functionCall":{"name":"get_weather","args":{"location":"Rome"}}},{"functionCall":{"id":"fc-3","name":"get_time","args":{}}}]},"finishReason":"STOP","index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"NEGLIGIBLE"}],"citationMetadata":{"citationSources":[{"startIndex":0,"endIndex":3,"uri":"https://example.org"}]}}],"usageMetadata":{"promptTokenCount":264,"candidatesTokenCount":80,"totalTokenCount":420,"cachedContentTokenCount":64,"thoughtsTokenCount":76,"promptTokensDetails":[{"modality":"TEXT","tokenCount":264}]},"modelVersion":"gemini-2.5-flash","responseId":"kYz2"}"#,
    ),
    usual(
        Format::Gemini,
        r#"{"role":"user","parts":[{"functionResponse":{"name":"get_weather","response":{"temperature":15,"unit":"C"}}},{"functionResponse":{"name":"get_weather","response":{"output":"20 degrees"}}},{"functionResponse":{"id":"fc-3","name":"get_time","response":{"error":"no clock"}}}]}"#,
    ),
    usual(
        Format::Gemini,
        r#"{"role":"user","parts":[{"functionResponse":{"name":"get_weather","response":{"result":"sunny"}}}]}"#,
    ),
    usual(
        Format::Gemini,
        r#"{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"print(1)"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}},{"text":"1"}]}"#,
    ),
    // Thoughts took all tokens; the reply was blocked; the question was blocked.
    usual(
        Format::Gemini,
        r#"{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":1032,"thoughtsTokenCount":1023,"candidatesTokenCount":0},"modelVersion":"gemini-2.5-flash","responseId":"kYz3"}"#,
    ),
    short(
        Format::Gemini,
        r#"{"candidates":[{"finishReason":"SAFETY","index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"HIGH","blocked":true}]}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"gemini-2.5-flash"}"#,
    ),
    short(Format::Gemini, r#"{"candidates":[{"content":{},"finishReason":"OTHER"}]}"#),
    usual(
        Format::Gemini,
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"gemini-2.5-flash"}"#,
    ),
    // As Google's Python library writes replies.
    short(
        Format::Gemini,
        r#"{"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true,"thought_signature":"CpIB"},{"text":"Hi","thought":null,"function_call":null}],"role":"model"},"finish_reason":"STOP","index":0,"safety_ratings":null}],"prompt_feedback":null,"usage_metadata":{"prompt_token_count":5,"candidates_token_count":3,"thoughts_token_count":2,"total_token_count":10},"model_version":"gemini-2.5-flash"}"#,
    ),
    short(
        Format::Gemini,
        r#"{"candidates":null,"prompt_feedback":{"block_reason":"SAFETY"},"model_version":"gemini-2.5-flash"}"#,
    ),
    short(Format::Gemini, r#"{"parts":[{"text":"no role"}]}"#),
    usual(Format::Gemini, r#"{"role":"system","parts":[{"text":"Be brief."}]}"#),
    // AI SDK.
    usual(
        Format::AiSdk,
        r#"{"id":"m1","role":"user","parts":[{"type":"text","text":"What is this?"},{"type":"file","mediaType":"image/png","filename":"a.png","url":"data:image/png;base64,iVBORw0KGgo="},{"type":"file","mediaType":"image/jpeg","url":"https://example.org/a.jpg"},{"type":"file","mediaType":"application/pdf","filename":"r.pdf","url":"https://example.org/r.pdf"}],"metadata":{"createdAt":1}}"#,
    ),
    usual(
        Format::AiSdk,
        r#"{"id":"m2","role":"assistant","metadata":{"model":"gpt-5","totalTokens":10},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm","state":"done","providerMetadata":{"anthropic":{"signature":"sig"}}},{"type":"text","text":"Let me see.","state":"done","providerMetadata":{"openai":{"itemId":"msg_1"}}},{"type":"tool-getWeather","toolCallId":"call_1","state":"output-available","input":{"city":"Paris"},"output":{"temperature":15},"callProviderMetadata":{"openai":{"itemId":"fc_1"}}},{"type":"tool-getTime","toolCallId":"call_2","state":"output-error","input":{},"errorText":"no clock"},{"type":"dynamic-tool","toolName":"mcp_x","toolCallId":"call_3","state":"input-available","input":{"a":1}},{"type":"step-start"},{"type":"source-url","sourceId":"s1","url":"https://example.org","title":"E"},{"type":"source-document","sourceId":"s2","mediaType":"application/pdf","title":"D"},{"type":"data-weather","id":"d1","data":{"t":15}},{"type":"text","text":"15 degrees.","state":"done"}]}"#,
    ),
    usual(
        Format::AiSdk,
        r#"{"id":"m3","role":"assistant","parts":[{"type":"tool-shot","toolCallId":"call_4","state":"output-available","input":{},"output":{"type":"content","value":[{"type":"text","text":"a picture"},{"type":"media","data":"iVBORw0KGgo=","mediaType":"image/png"}]}},{"type":"tool-say","toolCallId":"call_5","state":"output-available","input":{},"output":"done"}]}"#,
    ),
    usual(
        Format::AiSdk,
        r#"{"id":"m0","role":"system","parts":[{"type":"text","text":"Be brief."}]}"#,
    ),
    // pi: a message, and a line with one.
    usual(
        Format::Pi,
        r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],"timestamp":1733234401000}"#,
    ),
    usual(
        Format::Pi,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"text","text":"Hi","textSignature":"t"},{"type":"toolCall","id":"call_1","name":"bash","arguments":{"command":"ls"}}],"api":"anthropic-messages","provider":"anthropic","model":"m","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}},"stopReason":"toolUse","timestamp":2}"#,
    ),
    usual(
        Format::Pi,
        r#"{"role":"toolResult","toolCallId":"call_1","toolName":"bash","content":[{"type":"text","text":"out"}],"details":{"truncation":null},"isError":false,"timestamp":3}"#,
    ),
    usual(
        Format::Pi,
        r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"timestamp":4}"#,
    ),
    usual(
        Format::Pi,
        r#"{"role":"custom","customType":"ext","content":[{"type":"text","text":"x"}],"display":true,"details":{"a":1},"timestamp":5}"#,
    ),
    short(
        Format::Pi,
        r#"{"type":"message","id":"a1b2c3d4","parentId":null,"timestamp":"2024-12-03T14:00:01.000Z","message":{"role":"user","content":"Hello","timestamp":1733234401000}}"#,
    ),
    // phi.
    usual(
        Format::Phi,
        r#"{"content":[{"text":"q","type":"text"}],"role":"user","timestamp":1,"turnId":{"loopId":"l","turnIndex":0}}"#,
    ),
    usual(
        Format::Phi,
        r#"{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"toolCall","id":"c","name":"t","arguments":{"a":[1]}}],"model":"m","provider":"p","role":"assistant","stopReason":"toolUse","timestamp":2,"usage":{"input":1,"output":2,"reasoning":3,"cache_read":4,"cache_write":5,"total_tokens":12}}"#,
    ),
    usual(
        Format::Phi,
        r#"{"content":[{"type":"text","text":"out"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],"isError":false,"role":"toolResult","timestamp":3,"toolCallId":"c","toolName":"t"}"#,
    ),
];
