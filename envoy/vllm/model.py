"""Makes a model that vLLM loads with --load-format dummy: a Llama of two layers, and a byte-level BPE of 2,048 tokens trained on texts.

    model.py FOLDER TEXT...
"""
import json
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

folder, *texts = sys.argv[1:]
VOCABULARY = 2048
END = "<|end|>"

bpe = Tokenizer(models.BPE())
bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
bpe.decoder = decoders.ByteLevel()
bpe.train(texts, trainers.BpeTrainer(
    vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))

chat = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\n{% if add_generation_prompt %}assistant: {% endif %}"
PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END, chat_template=chat).save_pretrained(folder)

with open(folder + "/config.json", "w") as f:
    json.dump({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
        "num_hidden_layers": 2, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
        "vocab_size": VOCABULARY, "max_position_embeddings": 16384, "bos_token_id": 0, "eos_token_id": 0,
    }, f)
